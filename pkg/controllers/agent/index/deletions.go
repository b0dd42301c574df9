// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// The client does not return the answer to a deletion, and for an object without finalizers it has no new state. So a
// deletion cannot be observed as a write is. Until the watch reports it, the object does not look deleted. If
// its claim was removed by force meanwhile and created again, the new claim would take the object over, pull its fields
// and its password, and then report that a client of the hub had deleted it.
//
// Deletions are conditional on a state of the object. So an object that is still seen in that state is being deleted. A
// deletion that was not answered says nothing, and is not recorded.
//
// Only deletions by the manager are recorded: no cluster can mark another's object.

// deletions are the states in which objects of the hub were deleted, by place, until the watch reports that.
type deletions map[ownership.Place]Version

// forgetKinds drops the deletions of kinds that are no longer watched.
func (d deletions) forgetKinds(kinds sets.Set[schema.GroupResource]) {
	maps.DeleteFunc(d, func(key ownership.Place, _ Version) bool { return kinds.Has(key.Kind.GroupResource()) })
}

// MarkDeleted records that the hub has accepted a deletion that was conditional on this state of an object.
func (h *Hub) MarkDeleted(key ownership.Place, obj *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.following[key.Kind.GroupResource()] != key.Kind {
		return // No event would drop it.
	}
	h.deleted[key] = NewVersion(obj)
	// The watch may have been faster than the answer. If it is not, the handler of its event looks here later.
	h.forgetReported(key)
}

// forgetReported drops the deletion at a place if the cache no longer has the deleted state. It asks the cache, not the
// event, since events of earlier states can still arrive. The caller holds mu.
func (h *Hub) forgetReported(key ownership.Place) {
	deleted, ok := h.deleted[key]
	if !ok {
		return
	}
	known, err := h.Watcher.Metadata(key.Kind, key.NamespacedName)
	if apierrors.IsNotFound(err) || err == nil && NewVersion(known) != deleted {
		delete(h.deleted, key)
	}
}

// Get returns the claim's object at a place of the hub as the watch has it, except that an object that is recorded as
// deleted in that state is marked as being deleted. The errors are those of the watcher.
func (h *Hub) Get(key ownership.Place) (*unstructured.Unstructured, error) {
	return h.get(key, h.Watcher.Get)
}

// Metadata is Get for what needs the metadata only.
func (h *Hub) Metadata(key ownership.Place) (*unstructured.Unstructured, error) {
	return h.get(key, h.Watcher.Metadata)
}

func (h *Hub) get(key ownership.Place, read reader) (*unstructured.Unstructured, error) {
	// First the record, which is dropped only once the cache has a later state.
	h.mu.Lock()
	deleted, ok := h.deleted[key]
	h.mu.Unlock()
	obj, err := read(key.Kind, key.NamespacedName)
	if err != nil || !ok || deleted != NewVersion(obj) {
		return obj, err
	}
	obj.SetDeletionTimestamp(new(metav1.NewTime(h.Clock.Now())))
	return obj, nil
}
