// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Flux lists in status.inventory.entries what a Kustomization has applied, and since helm-controller 1.5 what a
// HelmRelease has. What an inventory names is the truth about what belongs together: it tells of what is missing, and
// of copies of labels that mean nothing.

// Kinds of Flux that have an inventory.
var (
	kustomizationGVK   = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"} //nolint:gochecknoglobals // A constant.
	fluxHelmReleaseGVK = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}        //nolint:gochecknoglobals // A constant.
)

// inventoryOf names the object of which a source follows the inventory.
func inventoryOf(s appsv1alpha1.DiscoverySource, application string) (gvk schema.GroupVersionKind, key types.NamespacedName, ok bool) {
	of := func(gvk schema.GroupVersionKind, r *appsv1alpha1.DiscoveredRelease) (schema.GroupVersionKind, types.NamespacedName, bool) {
		return gvk, types.NamespacedName{Namespace: orOwn(r.Namespace, application), Name: r.Name}, true
	}
	switch {
	case s.FluxKustomization != nil:
		return of(kustomizationGVK, s.FluxKustomization)
	case s.FluxHelmRelease != nil:
		return of(fluxHelmReleaseGVK, s.FluxHelmRelease)
	}
	return gvk, key, false
}

// An inventory is what a Kustomization or a HelmRelease of Flux says that it has applied.
type inventory struct {
	entries []inventoryEntry

	// more is whether it names more than is kept.
	more bool
}

func (i *inventory) equal(other *inventory) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.more == other.more && slices.Equal(i.entries, other.entries)
}

// inventoryEntry is an object in an inventory, as Flux writes it: "<namespace>_<name>_<group>_<kind>", and the version
// of the kind.
type inventoryEntry struct{ id, version string }

// object is the object of the entry.
func (e inventoryEntry) object() (gvk schema.GroupVersionKind, key types.NamespacedName, ok bool) {
	namespace, rest, found := strings.Cut(e.id, "_")
	atKind := strings.LastIndex(rest, "_")
	if !found || atKind < 0 {
		return gvk, key, false
	}
	atGroup := strings.LastIndex(rest[:atKind], "_")
	if atGroup < 0 {
		return gvk, key, false
	}
	gvk = schema.GroupVersionKind{Group: rest[atGroup+1 : atKind], Version: e.version, Kind: rest[atKind+1:]}
	// A colon, which the names of roles have, is written as two underscores.
	key = types.NamespacedName{Namespace: namespace, Name: strings.ReplaceAll(rest[:atGroup], "__", ":")}
	return gvk, key, key.Name != "" && gvk.Kind != "" && gvk.Version != ""
}

// inventoryIn reads the inventory of an object; nil if it has none. It keeps nothing of the object.
func inventoryIn(gk schema.GroupKind, obj *unstructured.Unstructured) *inventory {
	if gk != kustomizationGVK.GroupKind() && gk != fluxHelmReleaseGVK.GroupKind() {
		return nil
	}
	field, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "inventory", "entries")
	list, ok := field.([]any)
	if !ok {
		return nil
	}
	out := &inventory{}
	for i := range list {
		entry, _ := list[i].(map[string]any)
		id, _ := entry["id"].(string)
		version, _ := entry["v"].(string)
		const longest = 4 * maxName
		if id == "" || len(id) > longest || len(version) > maxName {
			continue
		}
		if len(out.entries) == appsv1alpha1.MaxDiscovered {
			out.more = true
			break
		}
		out.entries = append(out.entries, inventoryEntry{strings.Clone(id), strings.Clone(version)})
	}
	return out
}
