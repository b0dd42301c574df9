// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestTakeRoom(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	foo, baz := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownership.Source{Identifier: "w1", Namespace: "baz"}
	other := ownership.Source{Identifier: "w2", Namespace: "foo"}
	origin := func(us ownership.Source, name string) ownership.Origin {
		return ownership.Origin{Source: us, Resource: kind.GroupResource(), Name: name}
	}
	has := func(at ownership.Place, us ownership.Source) func(*Hub) {
		return func(h *Hub) {
			h.track(at, kindwatch.Event{Type: kindwatch.Added, Kind: kind, Object: objectAt(at, us)})
		}
	}
	left := func(at ownership.Place, us ownership.Source) *unstructured.Unstructured {
		obj := objectAt(at, us)
		obj.SetAnnotations(map[string]string{fleetv1alpha1.ReleasedFromAnnotation: us.String()})
		return obj
	}
	for name, tc := range map[string]struct {
		reason             string
		given              []func(*Hub)
		cluster, namespace int32
		full, ofNamespace  bool
	}{
		"Empty":          {reason: "There is room.", cluster: 1, namespace: 1},
		"Full":           {reason: "Another claim has an object.", given: []func(*Hub){has(in("bar", "a"), foo)}, cluster: 1, full: true},
		"OtherNamespace": {reason: "It counts for the cluster.", given: []func(*Hub){has(in("bar", "a"), baz)}, cluster: 1, namespace: 1, full: true},
		"NamespaceFull":  {reason: "The namespace has a limit of its own.", given: []func(*Hub){has(in("bar", "a"), foo)}, cluster: 9, namespace: 1, full: true, ofNamespace: true},
		"NamespaceFree":  {reason: "Those of other namespaces do not count.", given: []func(*Hub){has(in("bar", "a"), baz)}, namespace: 1},
		"OtherCluster":   {reason: "It has its own limit.", given: []func(*Hub){has(in("bar", "a"), other)}, cluster: 1},
		"Own":            {reason: "A claim's object does not count against it.", given: []func(*Hub){has(in("bar", "db"), foo)}, cluster: 1},
		"Stray":          {reason: "Its owner can name any cluster.", given: []func(*Hub){has(in("attacker", "a"), foo)}, cluster: 1},
		"Left":           {reason: "What a deleted claim left is still there.", cluster: 1, full: true, given: []func(*Hub){func(h *Hub) { h.track(in("bar", "a"), kindwatch.Event{Kind: kind, Object: left(in("bar", "a"), foo)}) }}},
		"LeftDeleted": {reason: "It is gone.", cluster: 1, given: []func(*Hub){
			func(h *Hub) { h.track(in("bar", "a"), kindwatch.Event{Kind: kind, Object: left(in("bar", "a"), foo)}) },
			func(h *Hub) {
				h.track(in("bar", "a"), kindwatch.Event{Type: kindwatch.Deleted, Kind: kind, Object: left(in("bar", "a"), foo)})
			},
		}},
		"BeingCreated": {reason: "Two claims do not get the last room.", cluster: 1, full: true, given: []func(*Hub){func(h *Hub) { h.taken.Insert("w1", origin(foo, "a")) }}},
		"Created": {reason: "It counts once.", cluster: 2, given: []func(*Hub){
			has(in("bar", "a"), foo), func(h *Hub) { h.taken.Insert("w1", origin(foo, "a")) },
		}},
		"GaveUp": {reason: "No object was created.", cluster: 1, given: []func(*Hub){func(h *Hub) {
			h.taken.Insert("w1", origin(foo, "a"))
			h.LeaveRoom(origin(foo, "a"))
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := syncedHub(t)
			for _, g := range tc.given {
				g(h)
			}
			limits := Limits{}
			if tc.cluster > 0 {
				limits.Cluster = &tc.cluster
			}
			if tc.namespace > 0 {
				limits.Namespace = &tc.namespace
			}
			full, ofNamespace := h.TakeRoom(origin(foo, "db"), limits, func(_, target string) bool { return target == "bar" })
			if (full != nil) != tc.full || ofNamespace != tc.ofNamespace {
				t.Errorf("%s got %v, of the namespace: %t", tc.reason, full, ofNamespace)
			}
		})
	}
}

// TestRoomIsReported: a claim that waits for room is queued when an object goes, and not whenever one changes.
func TestRoomIsReported(t *testing.T) {
	us, at := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownershiptest.InBar("a")
	whole, released, unowned := objectAt(at, us), objectAt(at, us), objectAt(at, us)
	released.SetAnnotations(map[string]string{fleetv1alpha1.ReleasedFromAnnotation: us.String()})
	unowned.SetAnnotations(nil)
	for name, tc := range map[string]struct {
		event kindwatch.Event
		want  bool
	}{
		"Added":           {event: kindwatch.Event{Type: kindwatch.Added, Object: whole}},
		"Changed":         {event: kindwatch.Event{Type: kindwatch.Updated, Old: whole, Object: whole}},
		"Deleted":         {event: kindwatch.Event{Type: kindwatch.Deleted, Object: whole}, want: true},
		"Left":            {event: kindwatch.Event{Type: kindwatch.Updated, Old: whole, Object: released}},
		"LeftIsDeleted":   {event: kindwatch.Event{Type: kindwatch.Deleted, Object: released}, want: true},
		"LeftIsUnowned":   {event: kindwatch.Event{Type: kindwatch.Updated, Old: released, Object: unowned}, want: true},
		"UnownedIsOthers": {event: kindwatch.Event{Type: kindwatch.Updated, Old: unowned, Object: whole}},
	} {
		t.Run(name, func(t *testing.T) {
			h := idleHub()
			waiting := multicluster.ObjectRequest{ClusterName: "w1", Kind: at.Kind}
			h.Wait(Room("w1"), waiting)
			if got := len(roomFor(h, tc.event)) > 0; got != tc.want {
				t.Errorf("want the claim to be queued: %t, got %t", tc.want, got)
			}
		})
	}
}
