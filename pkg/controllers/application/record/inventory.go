// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Flux lists the objects that a Kustomization applied in status.inventory.entries, and since helm-controller 1.5 also
// those of a HelmRelease. An inventory is authoritative: it also reveals missing objects, and meaningless copies of
// labels.

// Kinds of Flux that have an inventory.
var (
	KustomizationGVK = schema.GroupVersionKind{ //nolint:gochecknoglobals // A constant.
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization",
	}
	FluxHelmReleaseGVK = schema.GroupVersionKind{ //nolint:gochecknoglobals // A constant.
		Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease",
	}
)

// ParseInventory names the object whose inventory a source follows.
func ParseInventory(s appsv1alpha1.DiscoverySource, application string) (gvk schema.GroupVersionKind, key types.NamespacedName, ok bool) {
	of := func(gvk schema.GroupVersionKind, r *appsv1alpha1.DiscoveredRelease) (schema.GroupVersionKind, types.NamespacedName, bool) {
		return gvk, types.NamespacedName{Namespace: OrOwn(r.Namespace, application), Name: r.Name}, true
	}
	switch {
	case s.FluxKustomization != nil:
		return of(KustomizationGVK, s.FluxKustomization)
	case s.FluxHelmRelease != nil:
		return of(FluxHelmReleaseGVK, s.FluxHelmRelease)
	}
	return gvk, key, false
}

// An Inventory lists the objects that a Kustomization or a HelmRelease of Flux has applied.
type Inventory struct {
	Entries []InventoryEntry

	// More reports whether it has more entries than are kept.
	More bool

	// Strange are the entries that are not understood.
	Strange StrangeEntries
}

// StrangeEntries are the entries of an inventory that are not understood: their count, the count of all entries, the
// position of the first, counted from 1, and its text, cleaned and bounded.
type StrangeEntries struct {
	count, of, first int
	says             string
}

// maxStrange bounds the repeated text of an entry that is not understood, in characters.
const maxStrange = 64

func (i *Inventory) equal(other *Inventory) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.More == other.More && i.Strange == other.Strange && slices.Equal(i.Entries, other.Entries)
}

// InventoryEntry is an object in an inventory, in Flux's form "<namespace>_<name>_<group>_<kind>", and the version of
// the kind.
type InventoryEntry struct{ id, version string }

// Object is the object of the entry.
func (e InventoryEntry) Object() (gvk schema.GroupVersionKind, key types.NamespacedName, ok bool) {
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
	// Flux writes a colon, as in names of roles, as two underscores.
	key = types.NamespacedName{Namespace: namespace, Name: strings.ReplaceAll(rest[:atGroup], "__", ":")}
	return gvk, key, key.Name != "" && gvk.Kind != "" && gvk.Version != ""
}

// inventoryIn reads the inventory of an object; nil if it has none. It does not retain the object.
func inventoryIn(gk schema.GroupKind, obj *unstructured.Unstructured) *Inventory {
	if gk != KustomizationGVK.GroupKind() && gk != FluxHelmReleaseGVK.GroupKind() {
		return nil
	}
	field, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "inventory", "entries")
	list, ok := field.([]any)
	if !ok {
		return nil
	}
	out := &Inventory{}
	for i := range list {
		field, _ := list[i].(map[string]any)
		id, _ := field["id"].(string)
		version, _ := field["v"].(string)
		entry := InventoryEntry{id, version}
		switch {
		case !entry.understood():
			out.Strange.add(i, len(list), id)
		case len(out.Entries) == appsv1alpha1.MaxDiscovered:
			out.More = true
		default:
			out.Entries = append(out.Entries, InventoryEntry{strings.Clone(id), strings.Clone(version)})
		}
	}
	return out
}

// understood reports whether an entry identifies an object.
func (e InventoryEntry) understood() bool {
	const longest = 4 * maxName
	_, _, ok := e.Object()
	return ok && len(e.id) <= longest && len(e.version) <= maxName
}

func (s *StrangeEntries) add(position, of int, id string) {
	if s.count++; s.count == 1 {
		s.of, s.first, s.says = of, position+1, condition.Text(id, maxStrange)
	}
}

// Problem is the problem with these entries; nil if there are none. Such an entry may concern any namespace, so it is
// repeated only if it begins with a visible one, as entries do.
func (s *StrangeEntries) Problem(holder string, seen func(namespace string) bool) *condition.Error {
	if s.count == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %d entries of the inventory of %q are not understood, so the health of what they name is unknown. The first is number %d",
		s.count, s.of, holder, s.first)
	if namespace, _, ok := strings.Cut(s.says, "_"); ok && seen(namespace) {
		text += fmt.Sprintf(": %q", s.says)
	}
	return &condition.Error{Reason: appsv1alpha1.ReasonInventoryNotUnderstood, Message: text + "."}
}
