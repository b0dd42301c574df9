// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestObjectsThatWereNotSelectedAreDropped: an API server may ignore selectors. What we put into a cluster bears our
// label, and what does not is not to be taken for ours.
func TestObjectsThatWereNotSelectedAreDropped(t *testing.T) {
	kind, _ := widgets(t, "selected")
	for name, tc := range map[string]struct {
		reason   string
		selector string
		labels   map[string]string
		want     bool
	}{
		"NoSelector": {reason: "All objects were requested.", want: true},
		"Selected":   {reason: "It was requested.", selector: "a=b", labels: map[string]string{"a": "b", "c": "d"}, want: true},
		"OtherValue": {reason: "Another value was requested.", selector: "a=b", labels: map[string]string{"a": "c"}},
		"NoLabel":    {reason: "An object with the label was requested.", selector: "a", labels: map[string]string{"c": "d"}},
		"NotThere":   {reason: "An object without the label was requested.", selector: "!a", labels: map[string]string{"c": "d"}, want: true},
		"Invalid":    {reason: "No API server answers this.", selector: "a=b=c", labels: map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kind
			kind.LabelSelector = tc.selector
			forged := object("x", "1", "5")
			forged.SetLabels(tc.labels)
			metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: forged.GetNamespace(), Name: "x", UID: "1", ResourceVersion: "5", Labels: tc.labels,
			}}
			for how, put := range map[string]func(*store) error{
				"list":     func(s *store) error { return s.replace(s.itemsFor(forged.DeepCopy()), "6") },
				"event":    func(s *store) error { _ = s.replace(nil, "4"); s.update(forged.DeepCopy()); return nil },
				"observed": func(s *store) error { _ = s.replace(nil, "4"); s.observe(forged.DeepCopy()); return nil },
				"metadata": func(s *store) error { return s.replace(s.itemsFor(metadata.DeepCopy()), "6") },
			} {
				s := newStore(kind, func(Event) {}, func() {})
				if err := put(s); err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if got, _ := s.list(); (len(got) == 1) != tc.want {
					t.Errorf("%s: %s want kept %v, got %v", how, tc.reason, tc.want, got)
				}
			}
		})
	}
}

func TestForgedItemsAreOfTheRequestedKindOrDropped(t *testing.T) {
	kind, _ := widgets(t, "forged")
	for name, tc := range map[string]struct {
		reason          string
		clusterScoped   bool
		only            string
		namespace, item string
		want            bool
	}{
		"OtherKind":        {reason: "An item that claims to be a Secret is stored as the requested kind.", namespace: "default", item: "a", want: true},
		"Nameless":         {reason: "What has no name is not an object.", namespace: "default"},
		"NoNamespace":      {reason: "An object of a namespaced kind has a namespace.", item: "a"},
		"Namespaced":       {reason: "One of a cluster-scoped kind has none.", clusterScoped: true, namespace: "default", item: "a"},
		"ClusterScoped":    {reason: "And is kept without.", clusterScoped: true, item: "a", want: true},
		"OtherNamespace":   {reason: "It was not requested.", only: "default", namespace: "kube-system", item: "a"},
		"PathInName":       {reason: "A name does not lead elsewhere.", namespace: "default", item: "../secrets/a"},
		"PathInNamespace":  {reason: "Nor does a namespace.", namespace: "..", item: "a"},
		"LongName":         {reason: "A name is not longer than one of Kubernetes can be.", namespace: "default", item: strings.Repeat("n", 1<<20)},
		"LongNamespace":    {reason: "Nor is a namespace.", namespace: strings.Repeat("n", maxName+1), item: "a"},
		"EscapedNamespace": {reason: "Nor an escaped one.", namespace: "a%2fb", item: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kind
			kind.ClusterScoped, kind.Namespace = tc.clusterScoped, tc.only
			forged := object(tc.item, "1", "5")
			forged.SetNamespace(tc.namespace)
			forged.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
			metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.namespace, Name: tc.item, UID: "1", ResourceVersion: "5",
			}}
			for how, put := range map[string]func(*store) error{
				"list":     func(s *store) error { return s.replace(s.itemsFor(forged.DeepCopy()), "6") },
				"event":    func(s *store) error { _ = s.replace(nil, "4"); s.update(forged.DeepCopy()); return nil },
				"observed": func(s *store) error { _ = s.replace(nil, "4"); s.observe(forged.DeepCopy()); return nil },
				"metadata": func(s *store) error { return s.replace(s.itemsFor(metadata.DeepCopy()), "6") },
			} {
				s := newStore(kind, func(Event) {}, func() {})
				if err := put(s); err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				got, _ := s.list()
				if (len(got) == 1) != tc.want {
					t.Fatalf("%s: %s want kept %v, got %v", how, tc.reason, tc.want, got)
				}
				if tc.want && got[0].Object().GroupVersionKind() != kind.GroupVersionKind {
					t.Errorf("%s: %s want %s, got %s", how, tc.reason, kind.GroupVersionKind, got[0].Object().GroupVersionKind())
				}
			}
		})
	}
}

func TestKindsThatAreNotPathSegmentsAreRefused(t *testing.T) {
	good := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, Resource: "widgets"}
	if err := good.Validate(); err != nil {
		t.Errorf("want an ordinary kind to be valid, got %v", err)
	}
	if err := configMaps.Validate(); err != nil {
		t.Errorf("want a kind of the core group to be valid, got %v", err)
	}
	for name, change := range map[string]func(*Kind){
		"PathInResource":  func(k *Kind) { k.Resource = "../../../api/v1/secrets" },
		"Subresource":     func(k *Kind) { k.Resource = "widgets/status" },
		"PathInGroup":     func(k *Kind) { k.Group = "../api" },
		"PathInVersion":   func(k *Kind) { k.Version = "v1/namespaces/kube-system" },
		"QueryInResource": func(k *Kind) { k.Resource = "widgets?x" },
		"PathInNamespace": func(k *Kind) { k.Namespace = "../kube-system" },
		"NoVersion":       func(k *Kind) { k.Version = "" },
		"NoKind":          func(k *Kind) { k.Kind = "" },
	} {
		t.Run(name, func(t *testing.T) {
			kind := good
			change(&kind)
			if kind.Validate() == nil {
				t.Errorf("want %v to be invalid", kind)
			}
			w, _ := start(t, config, func(Event) {})
			w.Set("test", kind)
			if state, message := w.State(kind); state != StateNotServed || message == "" {
				t.Errorf("want it to be NotServed at once, got %s %q", state, message)
			}
			if err := w.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
			w.Set("test")
		})
	}
}

func TestOnlyAnnotationsKeepsNothingElse(t *testing.T) {
	kind := Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces",
		ClusterScoped: true, MetadataOnly: true, OnlyAnnotations: "example.org/a,example.org/b",
	}
	now := metav1.Now().Rfc3339Copy()
	got, ok := kind.admitted(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "foo", UID: "1", ResourceVersion: "5", DeletionTimestamp: &now, Labels: map[string]string{"big": "x"},
		Annotations:     map[string]string{"example.org/a": "kept", "example.org/other": "big"},
		OwnerReferences: []metav1.OwnerReference{{Name: "big"}}, Finalizers: []string{"big"},
	}}, "")
	if !ok {
		t.Fatal("want it kept")
	}
	want := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": "foo", "uid": "1", "resourceVersion": "5", "deletionTimestamp": now.UTC().Format(time.RFC3339),
		"annotations": map[string]any{"example.org/a": "kept"},
	}}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("want what identifies it, its state and the annotation (-want +got):\n%s", diff)
	}
}

func TestLabelsAndControllerThatAreKept(t *testing.T) {
	owner := func(name string, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "db.acmeco.org/v1", Kind: "MySQL", Name: name, UID: "7", Controller: &controller}
	}
	cases := map[string]struct {
		reason string
		owners []metav1.OwnerReference
		want   []any
	}{
		"Controller": {
			"Only the controller is read.", []metav1.OwnerReference{owner("other", false), owner("db", true)},
			[]any{map[string]any{"apiVersion": "db.acmeco.org/v1", "kind": "MySQL", "name": "db", "uid": "7", "controller": true}},
		},
		"TooLong": {"No object has such a name.", []metav1.OwnerReference{owner(strings.Repeat("x", maxName+1), true)}, nil},
		"None":    {"There may be none.", nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind := Kind{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets",
				MetadataOnly: true, OnlyAnnotations: "example.org/none", OnlyLabels: "example.org/a,example.org/b", KeepController: true,
			}
			got, ok := kind.admitted(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "foo", Name: "bar", UID: "1", ResourceVersion: "5", OwnerReferences: tc.owners,
				Labels: map[string]string{"example.org/a": "kept", "big": "x"}, Annotations: map[string]string{"big": "x"},
			}}, "")
			if !ok {
				t.Fatal("want it kept")
			}
			want := map[string]any{
				"namespace": "foo", "name": "bar", "uid": "1", "resourceVersion": "5", "labels": map[string]any{"example.org/a": "kept"},
			}
			if tc.want != nil {
				want["ownerReferences"] = tc.want
			}
			if diff := cmp.Diff(want, got.Object["metadata"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnlyTheFieldsOfOneManagerAreKept(t *testing.T) {
	managed := func(managers ...string) *unstructured.Unstructured {
		u := object("a", "1", "12")
		var entries []metav1.ManagedFieldsEntry
		for _, m := range managers {
			entries = append(entries, metav1.ManagedFieldsEntry{Manager: m, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)})
		}
		u.SetManagedFields(entries)
		return u
	}
	for name, tc := range map[string]struct {
		reason string
		keep   string
		want   []string
	}{
		"None":   {reason: "They are most of many objects, and no controller reads them."},
		"Ours":   {reason: "The entries of the requested manager are kept.", keep: "ours", want: []string{"ours", "ours"}},
		"Begins": {reason: "One that begins with the name and a hyphen is kept, too.", keep: "our", want: []string{"our-hub"}},
		"Absent": {reason: "What is not there is not kept.", keep: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			u, ok := configMaps.admitted(managed("kubectl", "ours", "crossplane", "our-hub", "ours"), tc.keep)
			if !ok {
				t.Fatal("want it admitted")
			}
			var got []string
			for _, e := range u.GetManagedFields() {
				got = append(got, e.Manager)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if _, there, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields"); there != (tc.want != nil) {
				t.Errorf("%s want the field there %v", tc.reason, tc.want != nil)
			}
		})
	}
}
