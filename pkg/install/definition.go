// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// DefinitionLike returns a definition with the names, versions and schemas of the hub's, to be adapted to workload
// clusters. Hub-specific parts are omitted: metadata, status, and the conversion, which refers to a Service of the hub
// and its CA.
func DefinitionLike(hub *unstructured.Unstructured) (crd *unstructured.Unstructured, spec map[string]any) {
	spec, _ = hub.Object["spec"].(map[string]any)
	if spec = runtime.DeepCopyJSON(spec); spec == nil {
		spec = map[string]any{}
	}
	spec["conversion"] = map[string]any{"strategy": "None"}
	crd = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	crd.SetGroupVersionKind(crossplane.CRDGVK)
	crd.SetName(hub.GetName())
	return crd, spec
}

// KeepStored returns wanted plus the versions of the cluster's definition in which objects may still be stored. An API
// server refuses to remove such a version. They are not storage versions, and kept, which may be nil, makes further
// changes to each.
//
// Discovery, which reads only the metadata of definitions, keeps none: it reports to users that the definition was
// rejected.
func KeepStored(wanted []any, have *unstructured.Unstructured, kept func(version map[string]any)) []any {
	stored, _, _ := unstructured.NestedStringSlice(have.Object, "status", "storedVersions")
	theirs, out := crossplane.Versions(have), slices.Clone(wanted)
	for _, name := range stored {
		named := func(v any) bool {
			version, ok := v.(map[string]any)
			return ok && version["name"] == name
		}
		i := slices.IndexFunc(theirs, named)
		if i < 0 || slices.ContainsFunc(out, named) {
			continue
		}
		version := runtime.DeepCopyJSON(theirs[i].(map[string]any)) //nolint:forcetypeassert // named has looked.
		version["storage"] = false
		if kept != nil {
			kept(version)
		}
		out = append(out, version)
	}
	return out
}

// ServedKind returns the kind that a definition defines, to read and write its objects: in the storage version if that
// is served, because no other can hold more, else in the first served version.
func ServedKind(crd *unstructured.Unstructured) (kindwatch.Kind, bool) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	name := ""
	for _, v := range crossplane.Versions(crd) {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		served, _, _ := unstructured.NestedBool(version, "served")
		storage, _, _ := unstructured.NestedBool(version, "storage")
		if n, _, _ := unstructured.NestedString(version, "name"); served && (name == "" || storage) {
			name = n
		}
	}
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: name, Kind: kind},
		Resource:         plural,
	}, group != "" && kind != "" && plural != "" && name != ""
}
