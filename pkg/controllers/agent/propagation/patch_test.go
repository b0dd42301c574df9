// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// decodePatch is a patch as it travels.
func decodePatch(t *testing.T, p client.Patch, err error) map[string]any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, data)
}

func parsed(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStatusPatch(t *testing.T) {
	condition := func(status string) map[string]any { return map[string]any{"type": "Ready", "status": status} }
	cases := map[string]struct {
		reason   string
		from, to map[string]any
	}{
		"First":          {"A claim without a status gets a whole one.", nil, map[string]any{"a": "b", "c": map[string]any{"d": int64(1)}}},
		"Nothing":        {"What is equal is not sent.", map[string]any{"a": "b"}, map[string]any{"a": "b"}},
		"Changed":        {"A value that differs is sent.", map[string]any{"a": "b", "c": "d"}, map[string]any{"a": "e", "c": "d"}},
		"Removed":        {"A field that is gone is sent as null.", map[string]any{"a": "b", "c": "d"}, map[string]any{"c": "d"}},
		"Deep":           {"Inside of an object only what differs is sent.", map[string]any{"a": map[string]any{"b": "c", "d": "e"}}, map[string]any{"a": map[string]any{"b": "f"}}},
		"List":           {"A list is sent as a whole.", map[string]any{"conditions": []any{condition("False"), condition("True")}}, map[string]any{"conditions": []any{condition("True")}}},
		"ObjectToValue":  {"An object can become something else.", map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": "b"}},
		"ValueToObject":  {"And the other way round.", map[string]any{"a": "b"}, map[string]any{"a": map[string]any{"b": "c"}}},
		"EmptiedObject":  {"An object that loses its last field stays as an empty one.", map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": map[string]any{}}},
		"EverythingGone": {"A status can become empty.", map[string]any{"a": "b"}, map[string]any{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := func(status map[string]any) *unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A"}}
				u.SetResourceVersion("7")
				if status != nil {
					u.Object["status"] = status
				}
				return u
			}
			data, err := client.MergeFrom(object(tc.from)).Data(object(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			// The general way omits an unchanged status. Such a patch is never sent.
			want := parsed(t, data)
			if want["status"] == nil {
				want["status"] = map[string]any{}
			}
			want["metadata"] = map[string]any{"resourceVersion": "7"}
			p, err := StatusPatch(object(tc.from), tc.to)
			if diff := cmp.Diff(want, decodePatch(t, p, err)); diff != "" {
				t.Errorf("%s\n-client.MergeFrom, +ours:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMetadataPatch(t *testing.T) {
	metadata := func(finalizers []string, annotations map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A"}}
		u.SetResourceVersion("7")
		u.SetName("a")
		u.SetResourceVersion("7")
		u.SetFinalizers(finalizers)
		u.SetAnnotations(annotations)
		return u
	}
	mine := map[string]string{"a": "b"}
	cases := map[string]struct {
		reason   string
		from, to *unstructured.Unstructured
	}{
		"FirstFinalizer": {"The list is new.", metadata(nil, mine), metadata([]string{"x"}, mine)},
		"OneMore":        {"The list is replaced as a whole.", metadata([]string{"x"}, nil), metadata([]string{"x", "y"}, nil)},
		"LastFinalizer":  {"The last finalizer goes with the list.", metadata([]string{"x"}, mine), metadata(nil, mine)},
		"Annotation":     {"An annotation is removed alone.", metadata(nil, map[string]string{"a": "b", "c": "d"}), metadata([]string{"x"}, mine)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := client.MergeFromWithOptions(tc.from, client.MergeFromWithOptimisticLock{}).Data(tc.to)
			if err != nil {
				t.Fatal(err)
			}
			p, err := MetadataPatch(tc.from, tc.to)
			if diff := cmp.Diff(parsed(t, data), decodePatch(t, p, err)); diff != "" {
				t.Errorf("%s\n-client.MergeFrom, +ours:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestShell(t *testing.T) {
	full := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "g/v1", "kind": "A", "metadata": map[string]any{"name": "n", "namespace": "ns", "uid": "u"}, "spec": map[string]any{},
	}}
	want := map[string]any{"apiVersion": "g/v1", "kind": "A", "metadata": map[string]any{"name": "n", "namespace": "ns"}}
	if diff := cmp.Diff(want, Shell(full).Object); diff != "" {
		t.Errorf("What an API server does not answer must not look as if it had.\n-want, +got:\n%s", diff)
	}
}
