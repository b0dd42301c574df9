// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// engagedHub is a hub with n clusters in which a kind is followed.
func engagedHub(t *testing.T, n int) *hub {
	t.Helper()
	h := idleHub()
	h.workloads.engaged = func(w *workload) { h.want(w.name, w.hubKinds()...) }
	h.workloads.disengaged = func(name mcr.ClusterName) {
		h.want(name)
		h.forgetRequests(name, func(Request) bool { return true })
	}
	h.watcher = idleWorkload(t, "hub", identity{}).watcher
	for i := range n {
		w := idleWorkload(t, mcr.ClusterName(fmt.Sprint("w", i)), identity{})
		h.workloads.add(nil, w)
		w.follow("first", followed{kind: bar("").kind, inHub: true})
		h.refreshFollowed(w)
	}
	return h
}

// TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize counts memory that is asked for: it was as much for each cluster of the fleet.
func TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize(t *testing.T) {
	cost := func(n int) float64 {
		h := engagedHub(t, n)
		w, _ := h.workloads.get("w0")
		kind := bar("").kind
		kind.Resource = "other"
		return testing.AllocsPerRun(100, func() {
			w.follow("other", followed{kind: kind, inHub: true})
			h.refreshFollowed(w)
			w.unfollow("other")
			h.refreshFollowed(w)
		})
	}
	if small, large := cost(50), cost(400); large > 1.1*small {
		t.Errorf("want the same work in 400 clusters as in 50, got %v and %v allocations", large, small)
	}
}

func TestTheHubFollowsAKindAsLongAsOneClusterDoes(t *testing.T) {
	h := engagedHub(t, 2)
	kind := bar("").kind
	o := origin{source: source{"id", "foo"}, kind: kind, name: "db"}
	h.origins.insert(o, bar("db"))
	expect := func(reason string, want ...kindwatch.Kind) {
		t.Helper()
		if !sets.New(want...).Equal(sets.New(h.watchedKinds()...)) {
			t.Errorf("%s: want %v, got %v", reason, want, h.watchedKinds())
		}
		if known := len(h.origins.places(o)) > 0; known != slices.Contains(want, kind) {
			t.Errorf("%s: origins known %t", reason, known)
		}
	}
	expect("both follow it", kind)
	w, _ := h.workloads.get("w0")
	h.workloads.remove(nil, w)
	expect("one went", kind)
	h.published["x"] = publication{kind: kind}
	h.refreshOffered()
	w, _ = h.workloads.get("w1")
	h.workloads.remove(nil, w)
	expect("the hub offers it", kind)
	clear(h.published)
	h.refreshOffered()
	expect("nobody wants it")
	w.follow("late", followed{kind: kind, inHub: true})
	h.refreshFollowed(w)
	expect("an instance that is gone wants nothing any more")
	if len(h.wants) != 0 {
		t.Errorf("want nothing to be kept, got %v", h.wants)
	}
}

// TestAWaitOfANewInstanceOutlivesTheOldOne has a cluster engaged again as soon as its old instance lets it: while the old one was
// forgotten, the waits of the new one were.
func TestAWaitOfANewInstanceOutlivesTheOldOne(t *testing.T) {
	h := engagedHub(t, 1)
	old, _ := h.workloads.get("w0")
	req := Request{ClusterName: "w0", Kind: bar("").kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	again := sync.OnceFunc(func() {
		h.workloads.add(nil, idleWorkload(t, "w0", identity{}))
		h.wait(bar("db"), req)
	})
	leave := h.workloads.disengaged
	h.workloads.disengaged = func(name mcr.ClusterName) {
		if h.workloads.mu.TryLock() { // Whoever can come between, does.
			h.workloads.mu.Unlock()
			again()
		}
		leave(name)
	}
	h.workloads.remove(nil, old)
	again()
	if waiting := h.waitingFor(bar("db")); len(waiting) != 1 {
		t.Errorf("want the new instance's claim to wait, got %v", waiting)
	}
}

// TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast is the same with many at once.
func TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast(t *testing.T) {
	h := engagedHub(t, 1)
	req := Request{ClusterName: "w0", Kind: bar("").kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	for range 200 {
		old, _ := h.workloads.get("w0")
		now := idleWorkload(t, "w0", identity{})
		var running sync.WaitGroup
		running.Go(func() { h.workloads.remove(nil, old) })
		running.Go(func() {
			h.workloads.add(nil, now)
			h.wait(bar("db"), req)
		})
		running.Go(func() {
			h.workloads.ifGone("w0", func() { h.forgetRequests("w0", func(Request) bool { return true }) })
		})
		running.Wait()
		if waiting := h.waitingFor(bar("db")); len(waiting) != 1 {
			t.Fatalf("want the last instance's claim to wait, got %v", waiting)
		}
	}
}

func TestOriginsAreFoundByCluster(t *testing.T) {
	x := originIndex{}
	a := origin{source: source{"a", "foo"}, kind: bar("").kind, name: "db"}
	b := origin{source: source{"b", "foo"}, kind: bar("").kind, name: "db"}
	x.insert(a, bar("db"))
	x.insert(b, bar("db"))
	if len(x["a"]) != 1 || len(x["b"]) != 1 || len(x.places(a)) != 1 {
		t.Errorf("want each origin with its cluster, got %v", x)
	}
	x.remove(a, bar("db"))
	x.forgetKinds(sets.New(bar("").kind))
	x.remove(b, bar("db"))
	if len(x) != 0 {
		t.Errorf("want nothing to be left, got %v", x)
	}
}

// BenchmarkOrphans is one scrape. What it costs for each cluster is not to grow with the fleet.
func BenchmarkOrphans(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			h := newHub(nil, newWorkloads(workloadOptions{}), nil, nil)
			for i := range n {
				h.origins.insert(origin{source: source{fmt.Sprint(i), "foo"}, kind: bar("").kind, name: "db"}, bar("db"))
			}
			for b.Loop() {
				for i := range n {
					h.originsIn(fmt.Sprint(i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cluster")
		})
	}
}
