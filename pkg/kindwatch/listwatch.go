// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// A kind is listed and watched in one goroutine, which reads the events itself. client-go's Reflector needs four,
// passes on errors as text, and retries out of sight.

// minWatch and maxWatch bound the time after which a server is requested to end a watch. It is random, so that watches
// that began together do not end together.
const minWatch, maxWatch = 5 * time.Minute, 10 * time.Minute

// shortWatch is the duration below which a watch is a failure. One without events may be because of its version.
const shortWatch = time.Second

var (
	errShortWatch = errors.New("the watch ended at once")
	errCutList    = errors.New("the watch ended before its list was complete")
	errNoList     = errors.New("the answer is no list of objects")
	errNoVersion  = errors.New("the watch ended, and the server sent no resource version to resume it from")
)

// position is where the next watch begins: after version if it is resumable, otherwise with a list.
type position struct {
	resumable bool
	version   string
}

// boundedVersion returns a resource version, or "" if it is longer than any of an API server.
func boundedVersion(version string) string {
	if len(version) > maxVersion {
		return ""
	}
	return version
}

// listAndWatch lists the kind, unless a position says that its watch can resume, and watches it until that fails. It
// updates the position.
func (k *kindWatch) listAndWatch(ctx context.Context, at *position) error {
	for {
		began := k.o.Clock.Now() // Some proxies send no header before the first event.
		events, err := k.next(ctx, at)
		if err != nil {
			return err
		}
		received, err := k.follow(ctx, events, at)
		switch short := k.o.Clock.Since(began) < shortWatch; {
		case apierrors.IsTooManyRequests(err), err == nil && short && received:
			return cmp.Or(err, errShortWatch)
		case err != nil, short:
			*at = position{} // The same would come again.
			return cmp.Or(err, errShortWatch)
		case at.version == "" || at.version == "0":
			*at = position{} // The next watch would not report what was deleted before it.
			return errNoVersion
		}
	}
}

// next begins the next watch: with the list, or from where the last one ended.
func (k *kindWatch) next(ctx context.Context, at *position) (watch.Decoder, error) {
	if !at.resumable {
		if events, err := k.list(ctx, at); err != nil || events != nil {
			return events, err
		}
	}
	events, err := k.watch(ctx, metav1.ListOptions{ResourceVersion: at.version})
	if err != nil && isAboutVersion(err) {
		*at = position{}
	}
	return events, err
}

// list lists the kind by a watch with initial events, which it returns, or in pages if the server refuses that.
func (k *kindWatch) list(ctx context.Context, at *position) (watch.Decoder, error) {
	items, version, events, err := k.watchList(ctx)
	if err != nil {
		events = nil
		if ctx.Err() != nil || isTooLarge(err) || isTransient(err) {
			return nil, err
		}
		if items, version, err = k.listPages(ctx); err != nil {
			return nil, fmt.Errorf("cannot list: %w", err)
		}
	}
	if err := k.store.replace(items, version); err != nil {
		if events != nil {
			events.Close()
		}
		return nil, err
	}
	*at = position{resumable: true, version: version}
	return events, nil
}

// watchList begins a watch with initial events, and collects these.
func (k *kindWatch) watchList(ctx context.Context) ([]*Item, string, watch.Decoder, error) {
	k.store.listing()
	events, err := k.watch(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return nil, "", nil, err
	}
	items, version, err := k.initialEvents(events)
	return items, version, events, err
}

// initialEvents collects the objects of a watch up to the bookmark that ends its list, which has the version. A watch
// without it is closed, and nothing that arrived is kept.
func (k *kindWatch) initialEvents(events watch.Decoder) ([]*Item, string, error) {
	all, complete := map[types.NamespacedName]*Item{}, false
	defer func() {
		if !complete {
			events.Close()
			k.store.listing()
		}
	}()
	for {
		t, obj, err := decode(events)
		switch {
		case err != nil && isEnd(err):
			return nil, "", errCutList // A server that ends streams early may send pages.
		case err != nil:
			return nil, "", err
		}
		if t == watch.Bookmark {
			if m, err := meta.Accessor(obj); err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				complete = true
				return slices.Collect(maps.Values(all)), boundedVersion(m.GetResourceVersion()), nil
			}
			continue
		}
		i, err := k.store.arrivedEvent(obj)
		switch {
		case err != nil:
			return nil, "", err
		case i == nil:
		case t == watch.Deleted || !i.kept():
			delete(all, i.Key)
		default:
			all[i.Key] = i
		}
	}
}

// follow applies the events of a watch until it ends, and closes it. It returns whether it received any, and no error
// if the next watch can resume where this one ended.
func (k *kindWatch) follow(ctx context.Context, events watch.Decoder, at *position) (received bool, err error) {
	defer events.Close()
	// A watch without a version begins with all objects, in any order.
	ordered := at.version != "" && at.version != "0"
	for ctx.Err() == nil {
		t, obj, err := decode(events)
		switch {
		case err != nil && !isEnd(err):
			return received, err
		case err != nil:
			return received, nil
		}
		received = true
		switch t { //nolint:exhaustive // A bookmark has a version only.
		case watch.Added, watch.Modified:
			k.store.update(obj)
		case watch.Deleted:
			k.store.delete(obj)
		}
		ordered = ordered || t != watch.Added
		if m, err := meta.Accessor(obj); err == nil && ordered {
			if version := boundedVersion(m.GetResourceVersion()); version != "" {
				at.version = version
				k.store.advanceTo(version)
			}
		}
	}
	return received, ctx.Err() //nolint:wrapcheck // Its cause is reported.
}

// decode returns the next event. One that reports an error is that error.
func decode(events watch.Decoder) (watch.EventType, runtime.Object, error) {
	t, obj, err := events.Decode()
	if err == nil && t == watch.Error {
		err = apierrors.FromObject(obj)
	}
	return t, obj, err //nolint:wrapcheck // park adds what failed.
}

// isEnd reports whether a watch ended as watches do: its server or a proxy ended it, or the connection was lost. The
// text of an answer says nothing about that.
func isEnd(err error) bool {
	var reset http2.StreamError
	return !apierror.IsAnswer(err) && (utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || errors.As(err, &reset))
}

// isAboutVersion reports whether a server may have refused a watch because it does not know its version any more.
func isAboutVersion(err error) bool {
	return isTooLarge(err) || apierror.IsAnswer(err) &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err)
}

// isTransient reports whether a request failed for a reason that says nothing about what it requested.
func isTransient(err error) bool {
	return isEnd(err) || utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// watch begins a watch. With initial events it is a list first, and the kind stays unseen until that is complete.
func (k *kindWatch) watch(ctx context.Context, o metav1.ListOptions) (watch.Decoder, error) {
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

// listPages gets the latest list in pages and converts it to items, so that at most one page is in memory whole. It
// requests no cached list (resource version 0), which API servers return whole despite the limit.
func (k *kindWatch) listPages(ctx context.Context) ([]*Item, string, error) {
	k.unseen(ctx)
	k.store.listing()
	all := map[types.NamespacedName]*Item{} // As they are charged: pages can repeat a name.
	o := metav1.ListOptions{Limit: pageSize}
	for {
		items, list, err := k.getPage(ctx, o)
		switch {
		case o.Limit > 1 && errors.Is(err, limits.ErrTooLarge):
			o.Limit = max(1, o.Limit/smallerPage)
			continue
		case err != nil:
			return nil, "", err
		}
		for _, i := range items {
			all[i.Key] = i
		}
		if list.Continue == "" {
			return slices.Collect(maps.Values(all)), boundedVersion(list.ResourceVersion), nil
		}
		o.Continue = list.Continue
	}
}

// getPage gets a page, which stays charged until the kept part of it is charged.
func (k *kindWatch) getPage(ctx context.Context, o metav1.ListOptions) ([]*Item, metav1.ListMeta, error) {
	ctx, done := limits.WithDecoding(ctx)
	defer done()
	var got runtime.Object
	var err error
	gvr := k.kind.GroupVersionResource()
	if k.kind.MetadataOnly {
		got, err = k.o.MetadataClient.Resource(gvr).Namespace(k.kind.Namespace).List(ctx, k.selected(o))
	} else {
		got, err = k.o.Client.Resource(gvr).Namespace(k.kind.Namespace).List(ctx, k.selected(o))
	}
	if err != nil {
		return nil, metav1.ListMeta{}, err //nolint:wrapcheck // By list.
	}
	return k.itemsIn(got)
}

// itemsIn converts a page to items, and counts them against the budget before the next page is requested.
func (k *kindWatch) itemsIn(got runtime.Object) (items []*Item, list metav1.ListMeta, err error) {
	passed := 0
	keep := func(obj runtime.Object) {
		if i, ok := k.store.convert(obj); ok && i.kept() {
			items = append(items, i)
		} else {
			passed++
		}
	}
	switch got := got.(type) {
	case *unstructured.UnstructuredList:
		if got.GetKind() == "Table" {
			return nil, list, errNoList
		}
		list = metav1.ListMeta{ResourceVersion: got.GetResourceVersion(), Continue: got.GetContinue()}
		for i := range got.Items {
			keep(&unstructured.Unstructured{Object: got.Items[i].Object})
			got.Items[i].Object = nil
		}
	case *metav1.PartialObjectMetadataList:
		list = got.ListMeta
		for i := range got.Items {
			keep(&got.Items[i])
			got.Items[i] = metav1.PartialObjectMetadata{}
		}
	default:
		return nil, list, errNoList
	}
	return items, list, k.store.arrivedPage(items, passed)
}
