// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// TestListsComeInPagesThatAreNotTooLarge has a list of 1,200 objects, of which a page can have 100 without being
// refused.
func TestListsComeInPagesThatAreNotTooLarge(t *testing.T) {
	const total, fits = 1200, 100
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"}
	k := newKindWatch(kind, &Options{Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1}, &usage{})
	requests := 0
	get := func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		requests++
		if o.ResourceVersion != "" || o.Limit <= 0 {
			t.Fatalf("a list must be requested in pages, not with %+v", o)
		}
		if o.Limit > fits {
			return nil, fmt.Errorf("cannot list: %w", &limits.Error{Subject: "list", Limit: limits.LimitBytes, Max: 1})
		}
		from, _ := strconv.Atoi(o.Continue)
		list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
		to := min(total, from+int(o.Limit))
		for i := from; i < to; i++ {
			list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"namespace": "ns", "name": "n" + strconv.Itoa(i)},
			}})
		}
		if to < total {
			list.SetContinue(strconv.Itoa(to))
		}
		return list, nil
	}
	got, err := k.list(t.Context(), metav1.ListOptions{ResourceVersion: "0"}, get)
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(got)
	if err != nil || len(items) != total {
		t.Errorf("want %d objects, got %d %v", total, len(items), err)
	}
	if want := 1 + (total+61)/62; requests != want {
		t.Errorf("want a page that is refused and then smaller ones, %d requests, got %d", want, requests)
	}
	// What is too large alone is an error.
	_, err = k.list(t.Context(), metav1.ListOptions{}, func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, &limits.Error{Subject: "list", Limit: limits.LimitBytes, Max: 1}
	})
	if err == nil {
		t.Error("an object that is too large must be an error")
	}
}
