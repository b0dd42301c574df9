// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func (k *kindWatch) newReflector() *cache.Reflector {
	return cache.NewReflectorWithOptions(k.listWatch(), nil, k.store, cache.ReflectorOptions{
		Name:            "kindwatch",
		TypeDescription: k.kind.String(),
		Clock:           k.o.Clock,
	})
}

func (k *kindWatch) listWatch() cache.ListerWatcher {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = k.kind.LabelSelector, k.kind.FieldSelector
		return o
	}
	gvr := k.kind.GroupVersionResource()
	if k.kind.MetadataOnly {
		r := k.o.MetadataClient.Resource(gvr)
		return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return k.page(o, func() (runtime.Object, error) { return r.List(ctx, selected(o)) })
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				k.store.listing()
				return r.Watch(ctx, selected(o))
			},
		}, k.o.MetadataClient)
	}
	r := k.o.Client.Resource(gvr)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return k.page(o, func() (runtime.Object, error) { return r.List(ctx, selected(o)) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			k.store.listing()
			return r.Watch(ctx, selected(o))
		},
	}, k.o.Client)
}

// page gets a page of a list and makes it one of items, so that no more than one page is there whole. It counts them against the
// budget before the next page is asked for.
func (k *kindWatch) page(o metav1.ListOptions, list func() (runtime.Object, error)) (runtime.Object, error) {
	if o.Continue == "" {
		k.store.listing()
	}
	got, err := list()
	if err != nil {
		return nil, err
	}
	var items []*item
	out, passed := &internalversion.List{Items: []runtime.Object{}}, 0
	keep := func(obj any) {
		if i, ok := k.store.hold(obj); ok && i.kept() {
			items = append(items, i)
			out.Items = append(out.Items, i)
		} else {
			passed++
		}
	}
	switch got := got.(type) {
	case *unstructured.UnstructuredList:
		if got.GetKind() == "Table" {
			// It is not a list of objects, which the reflector says.
			return got, nil
		}
		out.ListMeta = metav1.ListMeta{ResourceVersion: got.GetResourceVersion(), Continue: got.GetContinue()}
		for i := range got.Items {
			keep(&unstructured.Unstructured{Object: got.Items[i].Object})
			got.Items[i].Object = nil
		}
	case *metav1.PartialObjectMetadataList:
		out.ListMeta = got.ListMeta
		for i := range got.Items {
			keep(&got.Items[i])
			got.Items[i] = metav1.PartialObjectMetadata{}
		}
	default:
		return got, nil
	}
	if err := k.store.arrivedPage(items, passed); err != nil {
		return nil, err
	}
	return out, nil
}
