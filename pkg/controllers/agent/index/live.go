// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// livePage is the page size of a live list. One page is in memory at once.
const livePage = 100

// EachLive lists a kind live from the cluster's API server, page by page, and calls fn with the metadata of each
// object. Use it for unwatched kinds of any size. It stops at the first error of fn and returns it. A kind that the
// cluster does not serve has no objects.
func (w *Cluster) EachLive(ctx context.Context, kind kindwatch.Kind, fn func(*unstructured.Unstructured) error) error {
	options := &client.ListOptions{Limit: livePage, Raw: &metav1.ListOptions{LabelSelector: kind.LabelSelector}}
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := w.Guard.Run("listing "+kind.Resource, func() error { return w.Reader.List(ctx, list, options) })
		if apierror.IsNotServed(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list %s in cluster %q: %w", kind, w.Name, err)
		}
		for i := range list.Items {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
			if err != nil {
				return fmt.Errorf("cannot read an item of %s in cluster %q: %w", kind, w.Name, err)
			}
			obj := &unstructured.Unstructured{Object: content}
			obj.SetGroupVersionKind(kind.GroupVersionKind)
			if err := fn(obj); err != nil {
				return err
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
