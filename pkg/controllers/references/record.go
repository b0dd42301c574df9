// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// content is what is cached of an object with references, as JSON, which takes a fifth of the decoded object's memory:
// what is needed to resolve them and to write the condition. It excludes the object's version, so that unrelated
// changes are ignored. Of a settled object only this empty text is kept.
type content string

// settled is the content of an object with nothing to resolve or report: every field that a reference fills has a
// value, none follows its source, and the condition says that all are resolved. No change of another object, or of the
// permissions, affects that.
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

// version is what is cached of the objects that others depend on: only its change matters.
type version string

// Equal implements kindwatch.Record.
func (v version) Equal(other kindwatch.Record) bool { return other == kindwatch.Record(v) }

// IndexKeys implements kindwatch.Record.
func (v version) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (v version) Size() int64 { return int64(len(v)) }

// reduce keeps only objects whose references need resolving. However many others there are of a kind, they take no
// memory.
func reduce(kind kindwatch.Kind, obj *unstructured.Unstructured) (kindwatch.Record, bool) {
	switch {
	case isDependency(kind):
		return version(obj.GetResourceVersion()), true
	case obj.GetDeletionTimestamp() != nil, hasReferencesOfAnother(obj), !hasReferences(obj) && condition.Entry(obj, commonv1alpha1.ConditionReferencesResolved) == nil:
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

// hasReferences reports whether spec.references has any content.
func hasReferences(obj *unstructured.Unstructured) bool {
	raw, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "references")
	list, isList := raw.([]any)
	return raw != nil && (!isList || len(list) > 0)
}

// isSettled reports whether an object has nothing to resolve or report.
func isSettled(obj *unstructured.Unstructured) bool {
	if condition.Entry(obj, commonv1alpha1.ConditionReferencesResolved) == nil || !references.Settled(obj.Object) {
		return false
	}
	_, changes := withCondition(obj, newCondition(obj.GetGeneration(), outcome{}), metav1.Time{})
	return !changes
}

// needed is the part of an object that resolving its references needs.
func needed(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}
	for part, names := range map[string][]string{
		"metadata": {"namespace", "name", "uid", "generation"}, "status": {"conditions"},
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

// decodeEntry is the cached part of an object of a kind, in the version that was last observed, and whether it is
// settled: then it is its name only.
func decodeEntry(kind kindwatch.Kind, entry kindwatch.Entry) (obj *unstructured.Unstructured, isSettled bool, err error) {
	obj = &unstructured.Unstructured{Object: map[string]any{}}
	kept, _ := entry.Record.(content)
	if kept != settled {
		if err := kjson.Unmarshal([]byte(kept), &obj.Object); err != nil {
			return nil, false, fmt.Errorf("cannot decode the cached state of %s of %s: %w", entry.Key, kind, err)
		}
	}
	obj.SetGroupVersionKind(kind.GroupVersionKind)
	obj.SetNamespace(entry.Key.Namespace)
	obj.SetName(entry.Key.Name)
	obj.SetUID(entry.UID)
	obj.SetResourceVersion(entry.ResourceVersion)
	return obj, kept == settled, nil
}

// hasReferencesOfAnother reports whether an object's references were copied from another object: they are resolved
// where that one is, with that one's permissions.
//
// Crossplane copies the spec of a claim into its composite, which is cluster-scoped. There the references would lead to
// any namespace, although the claim's author may reference only one. And an object that has or had the source of a
// workload cluster's claim was written by a user of that cluster, who has no rights in the hub at all. A workload
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
