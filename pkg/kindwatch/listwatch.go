// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/masthead-dev/masthead/pkg/limits"
)

func (k *kindWatch) newReflector() *cache.Reflector {
	return cache.NewReflectorWithOptions(k.listWatch(), nil, k.store, cache.ReflectorOptions{
		Name:            "kindwatch",
		TypeDescription: k.kind.String(),
		Clock:           attemptClock{Clock: k.o.Clock, kind: k},
	})
}

func (k *kindWatch) listWatch() cache.ListerWatcher {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = k.kind.LabelSelector, k.kind.FieldSelector
		return o
	}
	// The reflector receives the error that ends a watch only as text, and treats it as transient.
	reported := func(ctx context.Context) context.Context {
		return limits.WithReport(ctx, func(err error) { k.endAttempt(err) })
	}
	gvr := k.kind.GroupVersionResource()
	if k.kind.MetadataOnly {
		r := k.o.MetadataClient.Resource(gvr).Namespace(k.kind.Namespace)
		return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return k.list(ctx, o, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return r.List(ctx, selected(o))
				})
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return k.watch(ctx, o, func() (watch.Interface, error) { return r.Watch(reported(ctx), selected(o)) })
			},
		}, k.o.MetadataClient)
	}
	r := k.o.Client.Resource(gvr).Namespace(k.kind.Namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return k.list(ctx, o, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return r.List(ctx, selected(o))
			})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return k.watch(ctx, o, func() (watch.Interface, error) { return r.Watch(reported(ctx), selected(o)) })
		},
	}, k.o.Client)
}

// pageSize is the number of objects per page, and smallerPage is the divisor used when a page was too large: so objects
// of any allowed size can be listed, in pages of one if need be.
const (
	pageSize    = 500
	smallerPage = 8
)

// getFunc gets a page of a list.
type getFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// list gets a list in pages and converts it to items, so that at most one page is in memory whole. It does not use the
// reflector's pager: that first requests any cached list (resource version 0), which API servers return whole despite
// the limit, and when a continue token has expired it requests the whole list at once.
func (k *kindWatch) list(ctx context.Context, o metav1.ListOptions, get getFunc) (runtime.Object, error) {
	k.unseen(ctx)
	o.ResourceVersion, o.ResourceVersionMatch, o.Continue, o.Limit = "", "", "", pageSize
	k.store.listing()
	all := &internalversion.List{Items: []runtime.Object{}}
	for {
		page, err := k.getPage(ctx, &o, get)
		if err != nil {
			return nil, err
		}
		list, ok := page.(*internalversion.List)
		if !ok {
			return page, nil
		}
		all.Items = append(all.Items, list.Items...)
		if list.Continue == "" {
			all.ListMeta = list.ListMeta
			return all, nil
		}
		o.Continue = list.Continue
	}
}

// watch starts a watch. One with initial events is a list first, and does not count as seen until that is complete.
func (k *kindWatch) watch(
	ctx context.Context, o metav1.ListOptions, begin func() (watch.Interface, error),
) (watch.Interface, error) {
	k.store.listing()
	k.unseen(ctx)
	w, err := begin()
	if err != nil {
		return nil, err
	}
	k.watching = w
	if o.SendInitialEvents == nil {
		k.seen()
	}
	return w, nil
}

// getPage gets a page that is not too large to be read, with fewer objects if the first size is refused.
func (k *kindWatch) getPage(ctx context.Context, o *metav1.ListOptions, get getFunc) (runtime.Object, error) {
	for {
		page, err := k.getAndKeep(ctx, *o, get)
		if o.Limit == 1 || !errors.Is(err, limits.ErrTooLarge) {
			return page, err
		}
		o.Limit = max(1, o.Limit/smallerPage)
	}
}

// getAndKeep gets a page, which stays charged until the kept part of it is charged.
func (k *kindWatch) getAndKeep(ctx context.Context, o metav1.ListOptions, get getFunc) (runtime.Object, error) {
	ctx, done := limits.WithDecoding(ctx)
	defer done()
	got, err := get(ctx, o)
	if err != nil {
		return nil, err
	}
	return k.page(got)
}

// page converts a page to items, and counts them against the budget before the next page is requested.
func (k *kindWatch) page(got runtime.Object) (runtime.Object, error) {
	var items []*item
	out, passed := &internalversion.List{Items: []runtime.Object{}}, 0
	keep := func(obj any) {
		if i, ok := k.store.convert(obj); ok && i.kept() {
			items = append(items, i)
			out.Items = append(out.Items, i)
		} else {
			passed++
		}
	}
	switch got := got.(type) {
	case *unstructured.UnstructuredList:
		if got.GetKind() == "Table" {
			// It is not a list of objects; the reflector reports that.
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
