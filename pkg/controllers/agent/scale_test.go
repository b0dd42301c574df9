// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/test/fakefleet"
)

// engagedFleet is an agent with n clusters in which a kind is followed.
func engagedFleet(t *testing.T, n int) *agent {
	t.Helper()
	h := idleHub()
	a := &agent{
		hub: h, workloads: h.workloads, fleet: h.fleet, definitions: &definitionReconciler{},
		requirements: &requirementReconciler{hub: h, identities: &identities{}, bursts: &bursts{}},
		enrolments:   map[mcr.ClusterName]enrolment{},
	}
	h.workloads.engaged, h.workloads.disengaged = a.engaged, a.disengaged
	h.watcher = idleWorkload(t, "hub", identity{}).watcher
	for i := range n {
		w := idleWorkload(t, mcr.ClusterName(fmt.Sprint("w", i)), identity{})
		h.workloads.add(nil, w)
		w.follow("first", followed{kind: bar("").kind, inHub: true})
		h.refreshFollowed(w)
	}
	return a
}

// TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize counts memory that is asked for: it was as much for each cluster of the fleet.
func TestANewKindInOneClusterCostsTheSameInAFleetOfAnySize(t *testing.T) {
	cost := func(n int) float64 {
		a := engagedFleet(t, n)
		w, _ := a.workloads.get("w0")
		kind := bar("").kind
		kind.Resource = "other"
		return testing.AllocsPerRun(100, func() {
			w.follow("other", followed{kind: kind, inHub: true})
			a.hub.refreshFollowed(w)
			w.unfollow("other")
			a.hub.refreshFollowed(w)
		})
	}
	if small, large := cost(50), cost(400); large > 1.1*small {
		t.Errorf("want the same work in 400 clusters as in 50, got %v and %v allocations", large, small)
	}
}

func TestTheHubFollowsAKindAsLongAsOneClusterDoes(t *testing.T) {
	a := engagedFleet(t, 2)
	kind := bar("").kind
	o := origin{source: source{"id", "foo"}, kind: kind, name: "db"}
	a.hub.origins.insert(o, bar("db"))
	expect := func(reason string, want ...kindwatch.Kind) {
		t.Helper()
		if !sets.New(want...).Equal(sets.New(a.hub.watchedKinds()...)) {
			t.Errorf("%s: want %v, got %v", reason, want, a.hub.watchedKinds())
		}
		if known := len(a.hub.origins.places(o)) > 0; known != slices.Contains(want, kind) {
			t.Errorf("%s: origins known %t", reason, known)
		}
	}
	expect("both follow it", kind)
	w, _ := a.workloads.get("w0")
	a.workloads.remove(nil, w)
	expect("one went", kind)
	a.hub.published["x"] = publication{kind: kind}
	a.hub.refreshOffered()
	w, _ = a.workloads.get("w1")
	a.workloads.remove(nil, w)
	expect("the hub offers it", kind)
	clear(a.hub.published)
	a.hub.refreshOffered()
	expect("nobody wants it")
	w.follow("late", followed{kind: kind, inHub: true})
	a.hub.refreshFollowed(w)
	expect("an instance that is gone wants nothing any more")
	if len(a.hub.wants) != 0 {
		t.Errorf("want nothing to be kept, got %v", a.hub.wants)
	}
}

// TestAWaitOfANewInstanceOutlivesTheOldOne has a cluster engaged again as soon as its old instance lets it: while the old one was
// forgotten, the waits of the new one were.
func TestAWaitOfANewInstanceOutlivesTheOldOne(t *testing.T) {
	a := engagedFleet(t, 1)
	old, _ := a.workloads.get("w0")
	req := Request{ClusterName: "w0", Kind: bar("").kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	again := sync.OnceFunc(func() {
		a.workloads.add(nil, idleWorkload(t, "w0", identity{}))
		a.hub.wait(bar("db"), req)
	})
	a.workloads.disengaged = func(name mcr.ClusterName) {
		if a.workloads.mu.TryLock() { // Whoever can come between, does.
			a.workloads.mu.Unlock()
			again()
		}
		a.disengaged(name)
	}
	a.workloads.remove(nil, old)
	again()
	if waiting := a.hub.waitingFor(bar("db")); len(waiting) != 1 {
		t.Errorf("want the new instance's claim to wait, got %v", waiting)
	}
}

// TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast is the same with many at once.
func TestInstancesThatComeAndGoAtOnceKeepTheWaitsOfTheLast(t *testing.T) {
	a := engagedFleet(t, 1)
	req := Request{ClusterName: "w0", Kind: bar("").kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	for range 200 {
		old, _ := a.workloads.get("w0")
		now := idleWorkload(t, "w0", identity{})
		var running sync.WaitGroup
		running.Go(func() { a.workloads.remove(nil, old) })
		running.Go(func() {
			a.workloads.add(nil, now)
			a.hub.wait(bar("db"), req)
		})
		running.Go(func() { a.workloads.ifGone("w0", func() { a.requirements.forgetCluster("w0") }) })
		running.Wait()
		if waiting := a.hub.waitingFor(bar("db")); len(waiting) != 1 {
			t.Fatalf("want the last instance's claim to wait, got %v", waiting)
		}
	}
}

// TestANamespaceOfTheHubCostsTheSameInAFleetOfAnySize counts reads of classes and of the fleet: there was one of each for every cluster.
func TestANamespaceOfTheHubCostsTheSameInAFleetOfAnySize(t *testing.T) {
	scheme := kruntime.NewScheme()
	if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reads := func(n int) int {
		a, fleet, got := engagedFleet(t, n), &fakefleet.Fleet{}, 0
		a.fleet = fleet
		for i := range n {
			name := mcr.ClusterName(fmt.Sprint("w", i))
			fleet.Set(connection.Cluster{Name: name, Enrolment: connection.Enrolment{Class: "gold"}})
			a.enrolmentChanged(name)
		}
		classes := fake.NewClientBuilder().WithScheme(scheme).
			WithObjects(&fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					got++
					return c.Get(ctx, k, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					got++
					return c.List(ctx, l, opts...)
				},
			}).Build()
		namespace := namespaceMetadata()
		namespace.Name = "team"
		var queue workqueue.TypedRateLimitingInterface[Request]
		a.hubNamespaceHandler(classes).Create(t.Context(), event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: namespace}, queue)
		return got
	}
	if small, large := reads(10), reads(20); small != large {
		t.Errorf("want as many reads in 20 clusters as in 10, got %d and %d", large, small)
	}
}

// TestForgettingAClusterLooksAtItsOwnRequests counts requests that are asked about: they were those of the whole fleet.
func TestForgettingAClusterLooksAtItsOwnRequests(t *testing.T) {
	h := idleHub()
	r := &requirementReconciler{
		hub: h, metrics: NewMetrics(prometheus.NewRegistry()), pushed: perRequest[pushedClaim]{}, shown: perRequest[string]{},
		told: perRequest[toldStatus]{}, failing: perRequest[failure]{}, vanished: perRequest[*unstructured.Unstructured]{},
	}
	const clusters, claims = 50, 3
	for i := range clusters * claims {
		req := Request{ClusterName: mcr.ClusterName(fmt.Sprint("w", i/claims)), Kind: bar("").kind, NamespacedName: bar(fmt.Sprint(i)).NamespacedName}
		h.wait(bar(fmt.Sprint(i)), req)
		r.metrics.requirement(req, ReasonSynced)
		r.pushed.set(req, pushedClaim{})
		r.shown.set(req, "x")
		r.told.set(req, toldStatus{})
		r.failing.set(req, failure{})
		r.vanished.set(req, nil)
	}
	asked := 0
	gone := func(req Request) bool {
		if asked++; req.ClusterName != "w7" {
			t.Errorf("want the requests of w7 alone to be looked at, got %s", req)
		}
		return true
	}
	h.forgetRequests("w7", gone)
	r.metrics.forgetRequests("w7", gone)
	r.forgetRequests("w7", gone)
	if left := len(h.waitsAt["w7"]) + len(r.metrics.reasons["w7"]) + len(r.pushed["w7"]) + len(r.vanished["w7"]); asked == 0 || left != 0 {
		t.Errorf("want all of its requests to be forgotten, got %d after %d looks", left, asked)
	}
	if others := (clusters - 1) * claims; len(h.waiting) != others || len(r.pushed) != clusters-1 {
		t.Errorf("want those of others to stay, got %d and %d", len(h.waiting), len(r.pushed))
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
			h := newHub(nil, &workloads{byName: map[mcr.ClusterName]*workload{}, instance: map[cluster.Cluster]*workload{}}, nil, nil)
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
