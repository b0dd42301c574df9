// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// TestWhatWeDeletedIsSeenToBeGoing deletes the state 1000 of an object. The hub's cache has it, or another one.
func TestWhatWeDeletedIsSeenToBeGoing(t *testing.T) {
	place := ownershiptest.InBar("db")
	at := func(uid types.UID, version string) *unstructured.Unstructured {
		obj := objectAt(place, ownership.Source{Identifier: "w1", Namespace: "foo"})
		obj.SetUID(uid)
		obj.SetResourceVersion(version)
		return obj
	}
	updated := func(obj *unstructured.Unstructured) kindwatch.Event {
		return kindwatch.Event{Type: kindwatch.Updated, Kind: place.Kind, Object: obj, Old: obj}
	}
	for name, tc := range map[string]struct {
		reason string
		known  *unstructured.Unstructured
		before func(h *Hub)
		then   func(h *Hub)
		going  bool
		kept   int
	}{
		"Deleted":   {reason: "The watch has yet to report the deletion.", known: at("u", "1000"), going: true, kept: 1},
		"Faster":    {reason: "The watch has reported a later state before the answer came.", known: at("u", "1001")},
		"Gone":      {reason: "The watch has reported that it is gone before the answer came."},
		"Recreated": {reason: "The watch has reported another object of that name before the answer came.", known: at("v", "1002")},
		"Earlier": {
			reason: "The watch still reports what came before the deletion.", known: at("u", "1000"), going: true, kept: 1,
			then: func(h *Hub) { h.Handle(updated(at("u", "999"))) },
		},
		"Reported": {
			reason: "What the watch reports later counts.", known: at("u", "1000"),
			then: func(h *Hub) { h.Observe(place, at("u", "1001")) },
		},
		"NoLongerWatched": {
			reason: "The kind is no longer watched when the answer comes.", known: at("u", "1000"),
			before: func(h *Hub) { clear(h.published); h.refreshOffered() },
		},
		"Unwatched": {
			reason: "The kind is no longer watched later.", known: at("u", "1000"),
			then: func(h *Hub) { clear(h.published); h.refreshOffered() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := syncedHub(t)
			if tc.known != nil {
				h.Observe(place, tc.known)
			}
			if tc.before != nil {
				tc.before(h)
			}
			h.MarkDeleted(place, at("u", "1000"))
			if tc.then != nil {
				tc.then(h)
			}
			obj, err := h.Get(place)
			if going := err == nil && obj.GetDeletionTimestamp() != nil; going != tc.going || len(h.deleted) != tc.kept {
				t.Errorf("%s Want it to be going: %t, and %d deletions to be kept, got %t and %d (%v).", tc.reason, tc.going, tc.kept, going, len(h.deleted), err)
			}
			if shared, err := h.Watcher.Get(place.Kind, place.NamespacedName); err == nil && shared.GetDeletionTimestamp() != nil {
				t.Errorf("%s Want the cached object to be left alone.", tc.reason)
			}
		})
	}
}
