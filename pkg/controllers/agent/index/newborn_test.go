// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestNewborns(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	kind, other := schema.GroupResource{Resource: "databases"}, schema.GroupResource{Resource: "queues"}
	origin := func(kind schema.GroupResource, name string) ownership.Origin {
		return ownership.Origin{Source: ownership.Source{Identifier: "a", Namespace: "team"}, Resource: kind, Name: name}
	}
	n := recentCreations{}
	if got := n.of("a", kind); len(got) != 0 {
		t.Errorf("want nothing at first, got %v", got)
	}
	// One a second, for an hour: those of the last minutes are kept, and not many more.
	for i := range 3600 {
		at := start.Add(time.Duration(i) * time.Second)
		n.insert(origin(kind, fmt.Sprint(i)), at, at)
		if kept, newborn := len(n["a"].created), int(RecentCreation/time.Second); kept > 2*newborn+leastRecentCreations {
			t.Fatalf("want about %d kept, got %d after %d", newborn, kept, i)
		}
	}
	last := origin(kind, "3599")
	if _, ok := n["a"].created[last]; !ok {
		t.Error("want the last one kept")
	}
	n.remove(last)
	n.insert(origin(other, "q"), start, start)
	if got := n.of("a", other); len(got) != 1 || got[0].Name != "q" {
		t.Errorf("want the one of the other kind, got %v", got)
	}
	n.forgetKinds(sets.New(kind))
	if got := n.of("a", kind); len(got) != 0 {
		t.Errorf("want nothing of a kind that is not watched, got %v", got)
	}
	n.remove(origin(other, "q"))
	n.remove(origin(other, "q"))
	if len(n) != 0 {
		t.Errorf("want nothing left, got %v", n)
	}
}

func TestReleased(t *testing.T) {
	now := testingclock.NewFakeClock(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	h := NewHub(nil, NewClusters(ClustersOptions{}), nil, nil)
	h.Clock = now
	from := ownership.Origin{Source: ownership.Source{Identifier: "a", Namespace: "team"}, Name: "db"}
	other := from
	other.Name = "other"
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	ownership.MarkCreated(obj, now.Now())
	h.trackCreation(from, obj)
	h.trackCreation(other, obj)
	h.MarkReleased(from)
	h.trackCreation(from, obj) // As after a relist of the hub.
	if h.IsRecentCreation(from) || !h.IsRecentCreation(other) {
		t.Error("want the object of a claim that was let go to be no newborn, and the other to be one still")
	}
	h.MarkAllReleased("a")
	if h.IsRecentCreation(other) {
		t.Error("want no newborn left of a cluster that is left alone")
	}
	now.Step(time.Millisecond)
	ownership.MarkCreated(obj, now.Now())
	h.trackCreation(from, obj)
	if !h.IsRecentCreation(from) {
		t.Error("want what is created later to be a newborn")
	}
	now.Step(RecentCreation)
	if h.IsRecentCreation(from) {
		t.Error("want it to be none when it has grown old")
	}
}
