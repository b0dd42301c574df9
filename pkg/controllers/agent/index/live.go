// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// livePage is the page size of a live list. At most two pages are in memory at once.
const livePage = 100

// EachLive lists a kind live from the cluster's API server, page by page, and calls fn with the metadata of each
// object. Use it for unwatched kinds of any size. It stops at the first error of fn and returns it. A kind that the
// cluster does not serve has no objects.
func (w *Cluster) EachLive(ctx context.Context, kind kindwatch.Kind, fn func(*unstructured.Unstructured) error) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := &client.ListOptions{Limit: page.Limit, Continue: page.Continue, Raw: &metav1.ListOptions{LabelSelector: kind.LabelSelector}}
		// The pager runs in its own goroutine.
		err := w.Guard.Run("listing "+kind.Resource, func() error { return w.Reader.List(ctx, list, options) })
		if apierror.IsNotServed(err) {
			return &metav1.PartialObjectMetadataList{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list %s in cluster %q: %w", kind, w.Name, err)
		}
		return list, nil
	})
	// The fallback is a full list, which must not be in memory.
	pages.PageSize, pages.PageBufferSize, pages.FullListIfExpired = livePage, 0, false
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return fmt.Errorf("cannot read an item of %s in cluster %q: %w", kind, w.Name, err)
		}
		obj := &unstructured.Unstructured{Object: content}
		obj.SetGroupVersionKind(kind.GroupVersionKind)
		return fn(obj)
	})
}
