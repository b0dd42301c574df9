// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Want is the desired set of an import's managed resources.
type Want struct {
	// Resources are complete managed resources, sorted by kind and name: the cluster first.
	Resources []*unstructured.Unstructured
	// Unserved are wanted kinds that the hub does not serve.
	Unserved []Kind
	// Lossy are identifiers that were observed and are not looked up.
	Lossy []Lossy
}

// wanter collects what is wanted.
type wanter struct {
	imp    Import
	served Schemas
	want   Want
	notes  notes
	seen   map[string]bool
}

// add adds the managed resource for one external resource. identifiers become forProvider.
func (w *wanter) add(kind Kind, id, externalName string, identifiers map[string]any) *unstructured.Unstructured {
	gvk, namespaced, found := w.served.Managed(kind)
	if !found {
		if !slices.Contains(w.want.Unserved, kind) {
			w.want.Unserved = append(w.want.Unserved, kind)
		}
		return nil
	}
	name := ManagedName(w.imp, kind, namespaced, id)
	if w.seen[gvk.String()+name] {
		return nil
	}
	w.seen[gvk.String()+name] = true
	mr := w.managed(gvk, namespaced, name, identifiers)
	if externalName != "" {
		mr.SetAnnotations(labels.Merge(mr.GetAnnotations(), map[string]string{ExternalNameAnnotation: externalName}))
	}
	w.want.Resources = append(w.want.Resources, mr)
	return mr
}

func (w *wanter) managed(gvk schema.GroupVersionKind, namespaced bool, name string, identifiers map[string]any) *unstructured.Unstructured {
	providerConfig := map[string]any{"name": cmp.Or(w.imp.ProviderConfig.Name, "default")}
	spec := map[string]any{
		"managementPolicies": []any{"Observe"},
		"forProvider":        identifiers,
		"providerConfigRef":  providerConfig,
	}
	mr := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if namespaced {
		mr.SetNamespace(w.imp.Namespace)
		providerConfig["kind"] = cmp.Or(w.imp.ProviderConfig.Kind, "ClusterProviderConfig")
	} else {
		spec["deletionPolicy"] = "Orphan"
	}
	mr.SetGroupVersionKind(gvk)
	mr.SetName(name)
	mr.SetLabels(maps.Clone(w.imp.Labels))
	if w.imp.Paused {
		mr.SetAnnotations(map[string]string{ManagedPausedAnnotation: "true"})
	}
	return mr
}

// connect makes the managed resource write its connection details.
func (w *wanter) connect(mr *unstructured.Unstructured) {
	if mr == nil || w.imp.ConnectionSecretName == "" {
		return
	}
	ref := map[string]any{"name": w.imp.ConnectionSecretName}
	if mr.GetNamespace() == "" {
		ref["namespace"] = w.imp.Namespace
	}
	mr.Object["spec"].(map[string]any)["writeConnectionSecretToRef"] = ref
}
