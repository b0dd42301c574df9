// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// settledThing is an object whose references are resolved, and which says so.
func settledThing() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{
			"namespace": "team-a", "name": "a", "uid": "u", "resourceVersion": "7", "generation": int64(2), "labels": map[string]any{"a": "b"},
			"managedFields": []any{map[string]any{"manager": references.FieldManager}},
		},
		"spec": map[string]any{
			"references": []any{map[string]any{"resource": "configmaps", "name": "s", "fromFieldPath": "data.a", "toFieldPath": "spec.a"}},
			"a":          "x", "n": int64(1), "f": 1.5,
		},
		"status": map[string]any{"phase": strings.Repeat("large ", 100), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	conditions, _ := withCondition(u, newCondition(2, outcome{}), metav1.NewTime(time.Unix(0, 0)))
	_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
	return u
}

func TestReduce(t *testing.T) {
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, fields...) }
	}
	none, forgotten, whole := "nothing", "that it is settled", "what is needed"
	cases := map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		want   string
	}{
		"Settled":      {reason: "Nothing can become of it.", change: func(*unstructured.Unstructured) {}, want: forgotten},
		"NoValue":      {reason: "The field is to be filled.", change: set(nil, "spec", "a"), want: whole},
		"OldCondition": {reason: "The condition is to be written.", change: set(int64(3), "metadata", "generation"), want: whole},
		"NoCondition":  {reason: "The condition is to be written, or there is none.", change: set([]any{}, "status", "conditions"), want: whole},
		"Follows": {
			reason: "It follows its source.",
			change: set([]any{map[string]any{
				"resource": "configmaps", "name": "s", "fromFieldPath": "data.a", "toFieldPath": "spec.a", "policy": map[string]any{"resolve": "Always"},
			}}, "spec", "references"), want: whole,
		},
		"NotOurs":     {reason: "It is reported to its author.", change: set("x", "spec", "references"), want: whole},
		"WasResolved": {reason: "It says that all none of its references are resolved.", change: set([]any{}, "spec", "references"), want: forgotten},
		"None": {
			reason: "It has no references.",
			change: func(u *unstructured.Unstructured) { u.Object = map[string]any{"metadata": u.Object["metadata"]} }, want: none,
		},
		"NoneInAList": {
			reason: "It has no references, and never had.",
			change: func(u *unstructured.Unstructured) {
				u.Object = map[string]any{"spec": map[string]any{"references": []any{}}}
			}, want: none,
		},
		"NoSpec":  {reason: "A server can send anything.", change: func(u *unstructured.Unstructured) { u.Object = map[string]any{"spec": []any{}} }, want: none},
		"Deleted": {reason: "It is going.", change: set("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp"), want: none},
		"OfAnother": {
			reason: "Its references are those of a claim of a workload cluster.",
			change: set("w1", "metadata", "annotations", fleetv1alpha1.SourceUIDAnnotation), want: none,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := settledThing()
			tc.change(u)
			before := runtime.DeepCopyJSON(u.Object)
			record, kept := reduce(thingKind, u)
			got := none
			if kept && record == kindwatch.Record(settled) {
				got = forgotten
			} else if kept {
				got = whole
			}
			if got != tc.want {
				t.Errorf("%s Want %s to be kept, got %s: %v", tc.reason, tc.want, got, record)
			}
			if diff := cmp.Diff(before, u.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

// TestWhatIsKept: everything that is needed of an object is kept, with its types, and no more.
func TestWhatIsKept(t *testing.T) {
	u := settledThing()
	unstructured.RemoveNestedField(u.Object, "spec", "a")
	record, kept := reduce(thingKind, u)
	if !kept {
		t.Fatal("nothing is kept")
	}
	entry := kindwatch.Entry{Key: thing("a").NamespacedName, UID: "u", ResourceVersion: "8", Record: record}
	got, isSettled, err := decodeEntry(thingKind, entry)
	if err != nil || isSettled {
		t.Fatalf("got %v, %v", isSettled, err)
	}
	want := u.DeepCopy()
	want.SetResourceVersion("8")
	unstructured.RemoveNestedField(want.Object, "metadata", "labels")
	unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(want.Object, "status", "phase")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	// A change that does not matter is no news.
	_ = unstructured.SetNestedField(u.Object, "other", "status", "phase")
	u.SetResourceVersion("9")
	if again, _ := reduce(thingKind, u); !again.Equal(record) {
		t.Errorf("want a change of what is not needed to be no news, got\n%v\n%v", record, again)
	}
	_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "n")
	if again, _ := reduce(thingKind, u); again.Equal(record) {
		t.Error("want a change of the spec to be news")
	}

	record, _ = reduce(thingKind, settledThing())
	entry.Record = record
	got, isSettled, err = decodeEntry(thingKind, entry)
	if err != nil || !isSettled || got.GetKind() != "Thing" || got.GetName() != "a" || got.GetUID() != "u" || record.Size() != 0 {
		t.Errorf("want the name of what is settled, got %v, %v, %v", got, isSettled, err)
	}
}

// TestDependencyIsKeptByItsVersion: each change of what objects depend on counts, and nothing else is kept of it.
func TestDependencyIsKeptByItsVersion(t *testing.T) {
	grants := &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"}}
	for name, kind := range map[string]kindwatch.Kind{
		"Source": watchedKind(sourceNamed("b")), "Grants": watchOfGrants(grants, "team-b"), "Definition": watchOfDefinition(schema.GroupResource{Resource: "things"}),
	} {
		u := settledThing()
		first, kept := reduce(kind, u)
		u.SetResourceVersion("8")
		second, _ := reduce(kind, u)
		if !kept || first.Equal(second) || first.Size() != 1 {
			t.Errorf("%s: got %v, %v, %v", name, first, second, kept)
		}
	}
}
