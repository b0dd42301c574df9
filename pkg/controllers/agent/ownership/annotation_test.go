// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestGetAnnotation(t *testing.T) {
	t.Parallel()
	object := func(metadata any) metav1.Object {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	}
	cases := map[string]struct {
		reason string
		obj    metav1.Object
		want   string
		found  bool
	}{
		"Unstructured": {
			reason: "it is there", obj: object(map[string]any{"annotations": map[string]any{"a": "x", "b": "y"}}), want: "x", found: true,
		},
		"Empty": {
			reason: "an empty annotation is one", obj: object(map[string]any{"annotations": map[string]any{"a": ""}}), found: true,
		},
		"Other":         {reason: "another is not this one", obj: object(map[string]any{"annotations": map[string]any{"b": "y"}})},
		"None":          {reason: "there are none", obj: object(map[string]any{})},
		"NoMetadata":    {reason: "there is no metadata", obj: &unstructured.Unstructured{}},
		"NotText":       {reason: "an API server that is none may send a number", obj: object(map[string]any{"annotations": map[string]any{"a": int64(1)}})},
		"OtherNotText":  {reason: "and then there are none at all", obj: object(map[string]any{"annotations": map[string]any{"a": "x", "b": int64(1)}})},
		"Null":          {reason: "null is empty", obj: object(map[string]any{"annotations": map[string]any{"a": nil}}), found: true},
		"NotMap":        {reason: "or a list of them", obj: object(map[string]any{"annotations": []any{"a"}})},
		"MetadataIsNot": {reason: "or metadata that is none", obj: object("a")},
		"Typed": {
			reason: "a typed object has them as a map", obj: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "x"}}},
			want: "x", found: true,
		},
		"TypedNone": {reason: "or none", obj: &corev1.Secret{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, found := getAnnotation(tc.obj, "a"); got != tc.want || found != tc.found {
				t.Errorf("%s: got %q, %t, want %q, %t", tc.reason, got, found, tc.want, tc.found)
			}
			if got, found := tc.obj.GetAnnotations()["a"]; got != tc.want || found != tc.found {
				t.Errorf("%s: others who read it get %q, %t, want %q, %t", tc.reason, got, found, tc.want, tc.found)
			}
		})
	}
}

func TestAnnotationOfCopiesNothing(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "x"}}}}
	if n := testing.AllocsPerRun(100, func() { getAnnotation(u, "a") }); n != 0 {
		t.Errorf("reading an annotation allocates %.0f times, want none", n)
	}
}
