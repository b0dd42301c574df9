// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// The answer to a deletion does not tell the object's new state, so that it cannot be observed like that of a write.
// Until the watch reports it, the object looks as if nobody had deleted it. If its claim was removed by force meanwhile
// and created again, the new claim would take the object over, pull its fields and its password, and then report that
// somebody in the hub had deleted it.
//
// Deletions are conditional on a state of the object. So an object that is still seen in that state is being deleted. A
// deletion that was not answered says nothing, and is not recorded.

// deletions are the states in which objects of the hub were deleted, by place, until the watch reports what became of
// them.
type deletions map[ownership.Place]ledger.Version

// forgetKinds drops the deletions of kinds that are no longer watched.
func (d deletions) forgetKinds(kinds sets.Set[kindwatch.Kind]) {
	maps.DeleteFunc(d, func(key ownership.Place, _ ledger.Version) bool { return kinds.Has(key.Kind) })
}

// Deleted records that the hub has accepted a deletion that was conditional on this state of an object.
func (h *Hub) Deleted(key ownership.Place, obj *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleted[key] = ledger.VersionOf(obj)
	// The watch may have been faster than the answer. An event that the cache does not have yet waits for the lock.
	h.forgetReported(key)
}

// forgetReported drops the deletion at a place if the watch has reported a later state: earlier ones can still arrive.
// The caller holds mu.
func (h *Hub) forgetReported(key ownership.Place) {
	deleted, ok := h.deleted[key]
	if !ok {
		return
	}
	known, err := h.Watcher.Get(key.Kind, key.NamespacedName)
	if apierrors.IsNotFound(err) || err == nil && ledger.VersionOf(known) != deleted {
		delete(h.deleted, key)
	}
}

// Get returns the claim's object at a place of the hub as the watch has it, marked as being deleted if we have deleted
// it and the watch has yet to report that. The errors are those of the watcher.
func (h *Hub) Get(key ownership.Place) (*unstructured.Unstructured, error) {
	obj, err := h.Watcher.Get(key.Kind, key.NamespacedName)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	deleted, ok := h.deleted[key]
	h.mu.Unlock()
	if !ok || deleted != ledger.VersionOf(obj) {
		return obj, nil
	}
	obj = obj.DeepCopy() // It is shared.
	obj.SetDeletionTimestamp(new(metav1.NewTime(h.Clock.Now())))
	return obj, nil
}
