// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// content is kept of an object with references, between two looks at it: as JSON, which takes a fifth of what the
// object takes decoded, what is needed to resolve them and to write the condition. The version of the object is not in
// it, so that a change of anything else is no news. Nothing but this empty text is kept of one that is settled.
type content string

// settled is the content of an object of which nothing is to be resolved, nor to be told: every field that a reference
// fills has a value, none follows its source, and the condition says that all are resolved. Whatever happens to another
// object, or to what is permitted, changes nothing about that.
const settled content = ""

var (
	_ kindwatch.Record = settled
	_ kindwatch.Record = version("")
)

// Equal implements kindwatch.Record.
func (c content) Equal(other kindwatch.Record) bool { return other == kindwatch.Record(c) }

// IndexKeys implements kindwatch.Record.
func (c content) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (c content) Size() int64 { return int64(len(c)) }

// version is kept of what objects depend on: that it changed is all that matters.
type version string

// Equal implements kindwatch.Record.
func (v version) Equal(other kindwatch.Record) bool { return other == kindwatch.Record(v) }

// IndexKeys implements kindwatch.Record.
func (v version) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (v version) Size() int64 { return int64(len(v)) }

// reduce keeps of objects those whose references are to be looked at. However many others there are of a kind, they
// take no memory.
func reduce(kind kindwatch.Kind, obj *unstructured.Unstructured) (kindwatch.Record, bool) {
	switch {
	case kind.FieldSelector != "":
		return version(obj.GetResourceVersion()), true
	case obj.GetDeletionTimestamp() != nil, hasReferencesOfAnother(obj), !hasReferences(obj) && shownCondition(obj) == nil:
		return nil, false
	case isSettled(obj):
		return settled, true
	}
	text, err := json.Marshal(needed(obj))
	if err != nil {
		return nil, false // It came as JSON, so it has one.
	}
	return content(text), true
}

// hasReferences is whether there is anything in spec.references.
func hasReferences(obj *unstructured.Unstructured) bool {
	raw, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "references")
	list, isList := raw.([]any)
	return raw != nil && (!isList || len(list) > 0)
}

// isSettled is whether nothing is to be resolved in an object, nor to be told of it.
func isSettled(obj *unstructured.Unstructured) bool {
	if shownCondition(obj) == nil || !references.Settled(obj.Object) {
		return false
	}
	_, changes := withCondition(obj, conditionOf(obj.GetGeneration(), outcome{}), metav1.Time{})
	return !changes
}

// needed is the part of an object that is needed to resolve its references.
func needed(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}
	for part, names := range map[string][]string{
		"metadata": {"namespace", "name", "uid", "generation", "managedFields"}, "status": {"conditions"},
	} {
		from, _ := obj.Object[part].(map[string]any)
		to := map[string]any{}
		for _, name := range names {
			if value, there := from[name]; there {
				to[name] = value
			}
		}
		if len(to) > 0 {
			out[part] = to
		}
	}
	if spec, there := obj.Object["spec"]; there {
		out["spec"] = spec
	}
	return out
}

// objectOf is an object of a kind as far as it is kept, in the version that was seen last, and whether it is settled:
// then it is its name only.
func objectOf(kind kindwatch.Kind, entry kindwatch.Entry) (obj *unstructured.Unstructured, isSettled bool, err error) {
	obj = &unstructured.Unstructured{Object: map[string]any{}}
	kept, _ := entry.Record.(content)
	if kept != settled {
		if err := kjson.Unmarshal([]byte(kept), &obj.Object); err != nil {
			return nil, false, fmt.Errorf("cannot read what is kept of %s of %s: %w", entry.Key, kind, err)
		}
	}
	obj.SetGroupVersionKind(kind.GroupVersionKind)
	obj.SetNamespace(entry.Key.Namespace)
	obj.SetName(entry.Key.Name)
	obj.SetUID(entry.UID)
	obj.SetResourceVersion(entry.ResourceVersion)
	return obj, kept == settled, nil
}

// hasReferencesOfAnother is whether the references of an object are those of another object, for which they are
// resolved where that one is, and by what that one may reference.
//
// Crossplane copies the spec of a claim into its composite, which is cluster-scoped. There the references would lead to
// any namespace, although whoever wrote the claim may reference one. And what bears the source of a claim of a workload
// cluster, or has borne it, was written by a user of that cluster, who has no rights in the hub at all. A workload
// cluster may be the hub of others.
func hasReferencesOfAnother(obj *unstructured.Unstructured) bool {
	if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "claimRef", "kind"); kind != "" {
		return true
	}
	annotations := obj.GetAnnotations()
	for _, origin := range [...]string{
		fleetv1alpha1.SourceUIDAnnotation, fleetv1alpha1.SourceNamespaceAnnotation, fleetv1alpha1.ReleasedFromAnnotation,
	} {
		if _, there := annotations[origin]; there {
			return true
		}
	}
	return false
}
