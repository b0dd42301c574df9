// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// This file does what client-go's Reflector does, which needs four goroutines for a watch instead of the one that reads
// its events, passes on errors as text, and retries out of sight.

// minWatch and maxWatch bound the time after which a server is requested to end a watch. It is random, so that watches
// that began together do not end together.
const minWatch, maxWatch = 5 * time.Minute, 10 * time.Minute

// shortWatch is how long a watch without events must last to count as one.
const shortWatch = time.Second

var (
	errShortWatch = errors.New("the watch ended at once, without an event")
	errCutList    = errors.New("the watch ended before its list was complete")
	errNoList     = errors.New("the answer is no list of objects")
)

// position is the resource version up to which the kind is known. Without listed, it has to be listed.
type position struct {
	listed  bool
	version string
}

// boundedVersion returns a resource version, or none for what no API server uses.
func boundedVersion(version string) string {
	if len(version) > maxVersion {
		return ""
	}
	return version
}

// listAndWatch lists the kind, unless its watch can go on from at, and watches it until that fails. It leaves in at
// where the next watch can go on.
func (k *kindWatch) listAndWatch(ctx context.Context, at *position) error {
	var events watch.Decoder
	if !at.listed {
		var err error
		if events, err = k.begin(ctx, at); err != nil {
			return err
		}
	}
	for {
		if events == nil {
			var err error
			if events, err = k.watch(ctx, metav1.ListOptions{ResourceVersion: at.version}); err != nil {
				if !isUnanswered(err) && !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err) {
					*at = position{} // It may be why.
				}
				return err
			}
		}
		if err := k.follow(ctx, events, at); err != nil {
			if !apierrors.IsTooManyRequests(err) {
				*at = position{} // The same event would come again.
			}
			return err
		}
		events = nil
	}
}

// begin lists the kind as the first events of a watch, which it returns, or in pages where the server does not stream.
func (k *kindWatch) begin(ctx context.Context, at *position) (watch.Decoder, error) {
	items, version, events, err := k.stream(ctx)
	if err != nil {
		if ctx.Err() != nil || isTooLarge(err) || isUnanswered(err) {
			return nil, err
		}
		if items, version, err = k.list(ctx, k.getPage); err != nil {
			return nil, fmt.Errorf("cannot list: %w", err)
		}
	}
	if err := k.store.replace(items, version); err != nil {
		if events != nil {
			events.Close()
		}
		return nil, err
	}
	*at = position{listed: true, version: version}
	return events, nil
}

// stream begins a watch with initial events, and collects these.
func (k *kindWatch) stream(ctx context.Context) (items []*item, version string, events watch.Decoder, err error) {
	events, err = k.watch(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return nil, "", nil, err
	}
	all := map[types.NamespacedName]*item{}
	for {
		t, obj, err := decode(events)
		if err != nil {
			events.Close()
			if isEnd(err) {
				err = errCutList // A server that ends streams early may send pages.
			}
			return nil, "", nil, err
		}
		if m, err := meta.Accessor(obj); t == watch.Bookmark && err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			return slices.Collect(maps.Values(all)), boundedVersion(m.GetResourceVersion()), events, nil
		}
		if t == watch.Bookmark {
			continue
		}
		i, err := k.store.arrive(obj)
		switch {
		case err != nil:
			events.Close()
			return nil, "", nil, err
		case i == nil:
		case t == watch.Deleted || !i.kept():
			delete(all, i.Key)
		default:
			all[i.Key] = i
		}
	}
}

// follow applies the events of a watch until it ends, and closes it. Without an error, the next one can go on where this
// one ended.
func (k *kindWatch) follow(ctx context.Context, events watch.Decoder, at *position) error {
	defer events.Close()
	began, any := k.o.Clock.Now(), false
	// A watch from no version begins with all objects, in any order.
	ordered := at.version != "" && at.version != "0"
	for ctx.Err() == nil {
		t, obj, err := decode(events)
		switch {
		case err != nil && !isEnd(err):
			return err
		case err != nil && !any && k.o.Clock.Since(began) < shortWatch:
			return errShortWatch
		case err != nil:
			return nil
		}
		any = true
		switch t {
		case watch.Added, watch.Modified:
			k.store.update(obj)
		case watch.Deleted:
			k.store.delete(obj)
		}
		ordered = ordered || t != watch.Added
		if m, err := meta.Accessor(obj); err == nil && ordered {
			at.version = boundedVersion(m.GetResourceVersion())
			k.store.reachedVersion(at.version)
		}
	}
	return ctx.Err() //nolint:wrapcheck // Its cause says why.
}

// decode returns the next event. One that reports an error is that error.
func decode(events watch.Decoder) (watch.EventType, runtime.Object, error) {
	t, obj, err := events.Decode()
	if err == nil && t == watch.Error {
		err = apierrors.FromObject(obj)
	}
	return t, obj, err //nolint:wrapcheck // The caller's caller says what failed.
}

// isEnd reports whether a watch ended as watches do: its server ended it, or the connection was lost.
func isEnd(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// isUnanswered reports whether a request failed without an answer of the server, or with the answer to come back later.
func isUnanswered(err error) bool {
	return isEnd(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || apierrors.IsTooManyRequests(err)
}

// watch begins a watch. One with initial events is a list first, and does not count as seen until that is complete.
func (k *kindWatch) watch(ctx context.Context, o metav1.ListOptions) (watch.Decoder, error) {
	k.store.listing()
	k.unseen(ctx)
	o.AllowWatchBookmarks, o.TimeoutSeconds = true, new(int64((minWatch + rand.N(maxWatch-minWatch)).Seconds())) //nolint:gosec // No secret.
	client := dynamicclient.Streamer(k.o.Client)
	if k.kind.MetadataOnly {
		client = k.o.MetadataClient
	}
	events, err := client.Stream(ctx, k.kind.GroupVersionResource(), k.kind.Namespace, k.selected(o))
	if err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	if o.SendInitialEvents == nil {
		k.seen()
	}
	return events, nil
}

// selected adds the selectors of the kind.
func (k *kindWatch) selected(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = k.kind.LabelSelector, k.kind.FieldSelector
	return o
}

// pageSize is the number of objects per page, and smallerPage is the divisor used when a page was too large: so objects
// of any allowed size can be listed, in pages of one if need be.
const (
	pageSize    = 500
	smallerPage = 8
)

// getFunc gets a page of a list.
type getFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// getPage is the getFunc of the kind.
func (k *kindWatch) getPage(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	gvr := k.kind.GroupVersionResource()
	if k.kind.MetadataOnly {
		return k.o.MetadataClient.Resource(gvr).Namespace(k.kind.Namespace).List(ctx, k.selected(o)) //nolint:wrapcheck // By list.
	}
	return k.o.Client.Resource(gvr).Namespace(k.kind.Namespace).List(ctx, k.selected(o)) //nolint:wrapcheck // By list.
}

// list gets the latest list in pages and converts it to items, so that at most one page is in memory whole. It requests
// no cached list (resource version 0), which API servers return whole despite the limit.
func (k *kindWatch) list(ctx context.Context, get getFunc) (all []*item, version string, err error) {
	k.unseen(ctx)
	k.store.listing()
	o := metav1.ListOptions{Limit: pageSize}
	for {
		items, page, err := k.keepPage(ctx, o, get)
		switch {
		case o.Limit > 1 && errors.Is(err, limits.ErrTooLarge):
			o.Limit = max(1, o.Limit/smallerPage)
			continue
		case err != nil:
			return nil, "", err
		}
		all = append(all, items...)
		if page.Continue == "" {
			return all, boundedVersion(page.ResourceVersion), nil
		}
		o.Continue = page.Continue
	}
}

// keepPage gets a page, which stays charged until the kept part of it is charged.
func (k *kindWatch) keepPage(ctx context.Context, o metav1.ListOptions, get getFunc) ([]*item, metav1.ListMeta, error) {
	ctx, done := limits.WithDecoding(ctx)
	defer done()
	got, err := get(ctx, o)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return k.page(got)
}

// page converts a page to items, and counts them against the budget before the next page is requested.
func (k *kindWatch) page(got runtime.Object) (items []*item, page metav1.ListMeta, err error) {
	passed := 0
	keep := func(obj any) {
		if i, ok := k.store.convert(obj); ok && i.kept() {
			items = append(items, i)
		} else {
			passed++
		}
	}
	switch got := got.(type) {
	case *unstructured.UnstructuredList:
		if got.GetKind() == "Table" {
			return nil, page, errNoList
		}
		page = metav1.ListMeta{ResourceVersion: got.GetResourceVersion(), Continue: got.GetContinue()}
		for i := range got.Items {
			keep(&unstructured.Unstructured{Object: got.Items[i].Object})
			got.Items[i].Object = nil
		}
	case *metav1.PartialObjectMetadataList:
		page = got.ListMeta
		for i := range got.Items {
			keep(&got.Items[i])
			got.Items[i] = metav1.PartialObjectMetadata{}
		}
	default:
		return nil, page, errNoList
	}
	return items, page, k.store.arrivedPage(items, passed)
}
