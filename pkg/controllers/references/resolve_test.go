// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// emptyReader returns every requested object, without any fields, and calls then after each request.
type emptyReader struct {
	client.Reader

	then func()
}

func (r emptyReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	r.then()
	return nil
}

// TestSourceThatChangesDuringTheLook: a source that is already watched for another object may change after it was read,
// and before it is recorded that this object depends on it as well.
func TestSourceThatChangesDuringTheLook(t *testing.T) {
	settings := references.Source{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps",
		NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "settings"},
	}
	cases := map[string]struct {
		reason  string
		changes bool
		before  []string // The objects for which the source is already watched.
		want    []string // The objects that are reconciled once more.
	}{
		"Joined":     {reason: "It has the value of before.", changes: true, before: []string{"a"}, want: []string{"a", "b"}},
		"NoChange":   {reason: "It has the value as it is.", before: []string{"a"}},
		"First":      {reason: "The watch begins with a list.", changes: true},
		"WasThere":   {reason: "The change requeued it in any case.", changes: true, before: []string{"b"}, want: []string{"b"}},
		"NoNewsToIt": {reason: "Its watch reported the change before.", before: []string{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, w := idle(t)
			r.resolver, w.recorder = references.NewResolver(), events.NewFakeRecorder(10)
			change := func() {
				w.changed(kindwatch.Event{Kind: watchedKind(settings), Entry: &kindwatch.Entry{Key: settings.NamespacedName}})
			}
			w.reader = emptyReader{then: func() {
				if tc.changes {
					change()
				}
			}}
			for _, user := range tc.before {
				w.watches(thing(user), settings)
			}
			change()
			queued(w)
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "team-a", "name": "b"},
				"spec": map[string]any{"references": []any{
					map[string]any{"resource": "configmaps", "name": "settings", "fromFieldPath": "data.a", "toFieldPath": "spec.a"},
				}},
			}}
			refs, err := references.Parse(obj.Object)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.resolve(t.Context(), &scope{workload: w, req: thing("b"), rules: &declared{kind: thingKind}, obj: obj}, refs); err != nil {
				t.Fatal(err)
			}
			if got := queued(w); !slices.Equal(got, tc.want) {
				t.Errorf("%s Want %v to be looked at once more, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// watches makes an object depend on sources.
func (w *workload) watches(req Request, sources ...references.Source) {
	_, _ = w.depend(req, 0, sources)
}
