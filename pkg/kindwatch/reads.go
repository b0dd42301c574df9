// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Get returns an object of a watched kind, ErrNotWatched, ErrNotSynced or NotFound. The object is the caller's.
func (w *Watcher) Get(kind Kind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	i, err := w.get(kind, key)
	if err != nil {
		return nil, err
	}
	return i.Object(), nil
}

// Metadata is Get for what needs the metadata only.
func (w *Watcher) Metadata(kind Kind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	i, err := w.get(kind, key)
	if err != nil {
		return nil, err
	}
	return i.Metadata(), nil
}

// Entry is Get for a Watcher with records.
func (w *Watcher) Entry(kind Kind, key types.NamespacedName) (Entry, error) {
	i, err := w.get(kind, key)
	if err != nil {
		return Entry{}, err
	}
	return i.Entry, nil
}

func (w *Watcher) get(kind Kind, key types.NamespacedName) (*Item, error) {
	k := w.kind(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot get %q of %s: %w", key, kind, ErrNotWatched)
	}
	i, synced := k.store.get(key)
	switch {
	case !synced:
		return nil, fmt.Errorf("cannot get %q of %s: %w", key, kind, ErrNotSynced)
	case i == nil:
		return nil, apierrors.NewNotFound(kind.GroupResource(), key.Name)
	}
	return i, nil
}

// List returns all objects of a watched kind in no order, ErrNotWatched or ErrNotSynced. Each is decoded on request, so
// that they never are in memory together.
func (w *Watcher) List(kind Kind) ([]*Item, error) { return w.list(kind, (*store).list) }

// ListNamespace is List for the objects of one namespace. Its cost depends on their number alone.
func (w *Watcher) ListNamespace(kind Kind, namespace string) ([]*Item, error) {
	return w.list(kind, func(s *store) ([]*Item, bool) { return s.namespace(namespace) })
}

// Entries returns all entries of a watched kind in the order of their keys, ErrNotWatched or ErrNotSynced.
func (w *Watcher) Entries(kind Kind) ([]Entry, error) {
	return entries(w.list(kind, (*store).list))
}

// Lookup returns the entries of a watched kind whose records have an index key, in the order of their keys,
// ErrNotWatched or ErrNotSynced.
func (w *Watcher) Lookup(kind Kind, indexKey string) ([]Entry, error) {
	return entries(w.list(kind, func(s *store) ([]*Item, bool) { return s.lookup(indexKey) }))
}

func (w *Watcher) list(kind Kind, ask func(*store) ([]*Item, bool)) ([]*Item, error) {
	k := w.kind(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, ErrNotWatched)
	}
	items, synced := ask(k.store)
	if !synced {
		return nil, fmt.Errorf("cannot list %s: %w", kind, ErrNotSynced)
	}
	return items, nil
}

func entries(items []*Item, err error) ([]Entry, error) {
	if err != nil {
		return nil, err
	}
	slices.SortFunc(items, byKey)
	out := make([]Entry, 0, len(items))
	for _, i := range items {
		out = append(out, i.Entry)
	}
	return out, nil
}

// State returns the state of a kind's watch and, unless that is StateSynced, the reason.
func (w *Watcher) State(kind Kind) (State, string) {
	k := w.kind(kind)
	if k == nil {
		return StateUnwatched, ""
	}
	return k.currentState()
}

// WaitForSync waits until no watched kind is in StateSyncing: each is either synced or known not to be syncable. It
// returns an error only if ctx ends first.
func (w *Watcher) WaitForSync(ctx context.Context) error {
	for {
		waiting := w.syncing()
		if waiting == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait until %s is synced: %w", waiting.kind, ctx.Err())
		case <-waiting.settles():
		}
	}
}

// syncing returns a kind that is not settled, or nil.
func (w *Watcher) syncing() *subscription {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, h := range w.kinds {
		if h.owners > 0 && !isClosed(h.settles()) {
			return h
		}
	}
	return nil
}

// settles returns a channel that is closed when the kind leaves StateSyncing. For a shared kind, other Watchers may
// receive that state before this one.
func (h *subscription) settles() <-chan struct{} {
	if h.subscriber != nil && !h.invalid {
		return h.subscriber.informed
	}
	return h.settled
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Observe passes the API server's response to a write to the Watcher. Get and List, or Entry, Entries and Lookup,
// return that object, or its record, until the watch has caught up with it; if Reduce rejects it, they omit it until
// then. A response about a different object is ignored, and so are objects of unwatched kinds and objects over budget.
func (w *Watcher) Observe(kind Kind, written types.NamespacedName, obj *unstructured.Unstructured) {
	if k := w.kind(kind); k != nil && objectKey(obj) == written {
		k.store.observe(obj)
	}
}

// KeepAgain passes an object to Options.Keep, and stores the result without an event if the object is stored in this
// state now. obj is trimmed.
func (w *Watcher) KeepAgain(kind Kind, obj *unstructured.Unstructured) {
	if k := w.kind(kind); k != nil {
		k.store.keepAgain(obj)
	}
}

// Retry retries all parked kinds of the resource at once. Call it when, for example, the CRD has changed.
func (w *Watcher) Retry(resource schema.GroupResource) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for kind, k := range w.kinds {
		if kind.GroupResource() == resource {
			k.retry()
		}
	}
}

// Relist lists the selected kinds again, in every version and form that is watched, including lingering ones. Call it
// when the result of Reduce for their objects has changed. The old records are served until the list completes; then
// those that differ are reported as Updated.
func (w *Watcher) Relist(selected func(schema.GroupKind) bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for kind, h := range w.kinds {
		if selected(kind.GroupKind()) {
			h.endAttempt(errRelist)
		}
	}
}

// Generations returns the values of Options.Generation when the last list of a kind began, and when the last complete
// one began: everything that Reduce kept by then is in the cache. Each is 0 if there was no such list, or if the kind
// is not watched.
func (w *Watcher) Generations(kind Kind) (begun, listed uint64) {
	k := w.kind(kind)
	if k == nil {
		return 0, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun, k.listed
}
