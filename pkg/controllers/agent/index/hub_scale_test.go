// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// engagedHub is a hub with n clusters in which a kind is followed.
func engagedHub(t *testing.T, n int) *Hub {
	t.Helper()
	h := idleHub()
	h.Clusters.Engaged = func(w *Cluster) { h.Want(w.Name, w.HubKinds()...) }
	h.Clusters.Disengaged = func(name mcr.ClusterName) {
		h.Want(name)
		h.ForgetRequests(name, func(multicluster.ObjectRequest) bool { return true })
	}
	h.Watcher = idleCluster(t, "hub", Identity{}).Watcher
	for i := range n {
		w := idleCluster(t, mcr.ClusterName(fmt.Sprint("w", i)), Identity{})
		h.Clusters.Add(t.Context(), w.Name, w)
		w.Follow("first", Followed{Kind: ownershiptest.InBar("").Kind, InHub: true})
		h.RefreshFollowed(w)
	}
	return h
}

// TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize counts allocated memory: it once grew with each cluster of the
// fleet.
func TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize(t *testing.T) {
	cost := func(n int) float64 {
		h := engagedHub(t, n)
		w, _ := h.Clusters.Get("w0")
		kind := ownershiptest.InBar("").Kind
		kind.Resource = "other"
		return testing.AllocsPerRun(100, func() {
			w.Follow("other", Followed{Kind: kind, InHub: true})
			h.RefreshFollowed(w)
			w.Follow("other", Followed{})
			h.RefreshFollowed(w)
		})
	}
	if small, large := cost(50), cost(400); large > 1.1*small {
		t.Errorf("want the same work in 400 clusters as in 50, got %v and %v allocations", large, small)
	}
}

func TestTheHubFollowsAKindAsLongAsOneClusterDoes(t *testing.T) {
	h := engagedHub(t, 2)
	kind := ownershiptest.InBar("").Kind
	o := ownership.Origin{Source: ownership.Source{Identifier: "id", Namespace: "foo"}, Resource: kind.GroupResource(), Name: "db"}
	h.origins.insert(o, ownershiptest.InBar("db"))
	expect := func(reason string, want ...kindwatch.Kind) {
		t.Helper()
		if !sets.New(want...).Equal(sets.New(h.WatchedKinds()...)) {
			t.Errorf("%s: want %v, got %v", reason, want, h.WatchedKinds())
		}
		if known := len(h.origins.places(o)) > 0; known != slices.Contains(want, kind) {
			t.Errorf("%s: origins known %t", reason, known)
		}
	}
	expect("both follow it", kind)
	w, _ := h.Clusters.Get("w0")
	h.Clusters.Remove(w.Name, w)
	expect("one went", kind)
	h.published["x"] = crossplane.Publication{Kind: kind}
	h.refreshOffered()
	w, _ = h.Clusters.Get("w1")
	h.Clusters.Remove(w.Name, w)
	expect("the hub offers it", kind)
	clear(h.published)
	h.refreshOffered()
	expect("no cluster wants it")
	w.Follow("late", Followed{Kind: kind, InHub: true})
	h.RefreshFollowed(w)
	expect("an instance that is gone wants nothing any more")
	if len(h.wants) != 0 {
		t.Errorf("want nothing to be kept, got %v", h.wants)
	}
}

// TestAWaitOfANewInstanceOutlivesTheOldOne re-engages a cluster as soon as its old instance allows: forgetting the old
// one once dropped the waits of the new one.
func TestAWaitOfANewInstanceOutlivesTheOldOne(t *testing.T) {
	h := engagedHub(t, 1)
	old, _ := h.Clusters.Get("w0")
	req := multicluster.ObjectRequest{ClusterName: "w0", Kind: ownershiptest.InBar("").Kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	again := sync.OnceFunc(func() {
		h.Clusters.Add(t.Context(), "w0", idleCluster(t, "w0", Identity{}))
		h.Wait(ownershiptest.InBar("db"), req)
	})
	leave := h.Clusters.Disengaged
	h.Clusters.Disengaged = func(name mcr.ClusterName) {
		var came atomic.Bool
		go func() { again(); came.Store(true) }()
		for range 10000 { // Let other goroutines interfere. None can: the lock is held.
			if came.Load() {
				break
			}
			runtime.Gosched()
		}
		leave(name)
	}
	h.Clusters.Remove(old.Name, old)
	again()
	if waiting := h.WaitingFor(ownershiptest.InBar("db")); len(waiting) != 1 {
		t.Errorf("want the new instance's claim to wait, got %v", waiting)
	}
}

// TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast is the same with many at once.
func TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast(t *testing.T) {
	h := engagedHub(t, 1)
	req := multicluster.ObjectRequest{ClusterName: "w0", Kind: ownershiptest.InBar("").Kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	for range 200 {
		old, _ := h.Clusters.Get("w0")
		now := idleCluster(t, "w0", Identity{})
		var running sync.WaitGroup
		running.Go(func() { h.Clusters.Remove(old.Name, old) })
		running.Go(func() {
			h.Clusters.Add(t.Context(), now.Name, now)
			h.Wait(ownershiptest.InBar("db"), req)
		})
		running.Go(func() {
			h.Clusters.IfGone("w0", func() { h.ForgetRequests("w0", func(multicluster.ObjectRequest) bool { return true }) })
		})
		running.Wait()
		if waiting := h.WaitingFor(ownershiptest.InBar("db")); len(waiting) != 1 {
			t.Fatalf("want the last instance's claim to wait, got %v", waiting)
		}
	}
}
