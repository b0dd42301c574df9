// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// TestWhatAReconcileWroteHasItsClaimNotLookedAtAgain reports changes of a claim and of its object during a reconcile,
// as when watches are faster than the responses to writes.
func TestWhatAReconcileWroteHasItsClaimNotLookedAtAgain(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	const (
		ours   = `{'metadata':{'name':'db','namespace':'foo','uid':'1','resourceVersion':'5'}}`
		theirs = `{'metadata':{'name':'db','namespace':'foo','uid':'1','resourceVersion':'6'}}`
	)
	for name, tc := range map[string]struct {
		reason string
		event  kindwatch.EventType
		object string
		again  bool
	}{
		"Own":       {"It was written by the reconcile.", kindwatch.Updated, ours, false},
		"Created":   {"So was this.", kindwatch.Added, ours, false},
		"Another's": {"Another client has changed it since.", kindwatch.Updated, theirs, true},
		"Gone":      {"It has gone in the state that was written: that was not the reconcile.", kindwatch.Deleted, ours, true},
	} {
		for side, report := range map[string]func(*agent, *index.Cluster, multicluster.ObjectRequest, kindwatch.Event){
			"Claim": func(a *agent, w *index.Cluster, _ multicluster.ObjectRequest, e kindwatch.Event) { a.handleClaim(w, e) },
			"Hub": func(a *agent, _ *index.Cluster, req multicluster.ObjectRequest, e kindwatch.Event) {
				a.requirements.hubChanged(req, e)
			},
		} {
			t.Run(name+side, func(t *testing.T) {
				a, w, q := queueingAgent(t)
				r := a.requirements
				req := multicluster.ObjectRequest{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
				e := kindwatch.Event{Type: tc.event, Kind: kind, Object: agenttest.Parse(t, tc.object)}

				r.reported.Begin(req)
				report(a, w, req, e)
				if held := q.Len() == 0; held == (tc.event == kindwatch.Deleted) {
					t.Errorf("%s While the claim is reconciled, want a change to wait, and an end not to; queued: %d", tc.reason, q.Len())
				}
				noted := func() bool { return r.ledger.Entry(req).Changes != (index.Changes{}) }
				// A hub object's deletion is timed from its report.
				atOnce := tc.event == kindwatch.Deleted && side == "Hub"
				if noted() != atOnce {
					t.Error("want nothing to be timed before it is known whose it is")
				}
				r.queueHeld(req, []index.Version{{UID: "1", ResourceVersion: "5"}})
				if again := q.Len() == 1; again != tc.again {
					t.Errorf("%s Looked at again: want %t, got %t", tc.reason, tc.again, again)
				}
				if wantsTime := tc.again && tc.event != kindwatch.Deleted || atOnce; noted() != wantsTime {
					t.Errorf("%s Timed: want %t, got %t", tc.reason, wantsTime, noted())
				}
				// After the reconcile, everything is queued at once: the watcher recognises echoes.
				report(a, w, req, e)
				if q.Len() != 1 {
					t.Errorf("want a claim that is not reconciled to be queued, got %d in the queue", q.Len())
				}
			})
		}
	}
}

// queueingAgent returns an agent with a cluster, and the queue of its claims.
func queueingAgent(t *testing.T) (*agent, *index.Cluster, workqueue.TypedRateLimitingInterface[multicluster.ObjectRequest]) {
	t.Helper()
	h := idleHub()
	w := idleWorkload(t, "w1", index.Identity{})
	w.Owner = func() hubidentity.Owner { return hubidentity.Owner{} }
	h.Clusters.Add(t.Context(), w.Name, w)
	r := (&requirementReconciler{
		hub: h, workloads: h.Clusters, fleet: &fakefleet.Fleet{}, clock: testingclock.NewFakePassiveClock(time.Now()),
		metrics: downstream.New(nil),
	}).complete(0, 0)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[multicluster.ObjectRequest]())
	t.Cleanup(q.ShutDown)
	if err := h.Requirements.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return &agent{hub: h, requirements: r}, w, q
}

// TestHeldEventsKeepNoObjects: the owner of a cluster decides how large they are, and how many wait.
func TestHeldEventsKeepNoObjects(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	a, w, q := queueingAgent(t)
	req := multicluster.ObjectRequest{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	a.requirements.reported.Begin(req)
	parse := func(version string) *unstructured.Unstructured {
		return agenttest.Parse(t, `{'metadata':{'name':'db','namespace':'foo','uid':'1','resourceVersion':'`+version+`'}}`)
	}
	var objects []weak.Pointer[unstructured.Unstructured]
	for _, handle := range []func(kindwatch.Event){
		func(e kindwatch.Event) { a.handleClaim(w, e) }, func(e kindwatch.Event) { a.requirements.hubChanged(req, e) },
	} {
		e := kindwatch.Event{Type: kindwatch.Updated, Kind: kind, Object: parse("6"), Old: parse("5")}
		objects = append(objects, weak.Make(e.Object), weak.Make(e.Old))
		handle(e)
	}
	runtime.GC()
	for i, object := range objects {
		if object.Value() != nil {
			t.Errorf("object %d is kept", i)
		}
	}
	if a.requirements.queueHeld(req, nil); q.Len() != 1 {
		t.Errorf("want the claim to be queued after its reconcile, got %d", q.Len())
	}
}

// TestWhatWasReportedOfAClusterThatHasGoneIsForgotten removes a cluster during a reconcile of one of its claims.
func TestWhatWasReportedOfAClusterThatHasGoneIsForgotten(t *testing.T) {
	h := idleHub()
	w := idleWorkload(t, "w1", index.Identity{})
	h.Clusters.Add(t.Context(), w.Name, w)
	during := &duringClock{PassiveClock: clock.RealClock{}}
	r := (&requirementReconciler{
		hub: h, workloads: h.Clusters, fleet: &fakefleet.Fleet{}, clock: during, identities: &hubaccess.Clients{},
		metrics: downstream.New(nil),
	}).complete(0, 0)
	req := multicluster.ObjectRequest{ClusterName: "w1"}
	object := agenttest.Parse(t, `{'metadata':{'name':'db','uid':'1','resourceVersion':'5'}}`)
	held := false
	during.do = func() {
		r.hubChanged(req, kindwatch.Event{Type: kindwatch.Updated, Object: object})
		held = r.ledger.Entry(req).Changes == (index.Changes{})
		h.Clusters.Remove(w.Name, w)
	}
	if _, err := r.Reconcile(t.Context(), req); err != nil || !held {
		t.Fatalf("want the report to wait for the end of the reconcile, got %t, %v", held, err)
	}
	if left := r.ledger.Entry(req); left != (index.Entry{}) {
		t.Errorf("want nothing to be left of the cluster, got %v", left)
	}
}

// duringClock does something when it is read first, as a reconcile does.
type duringClock struct {
	clock.PassiveClock
	do func()
}

// Now implements clock.PassiveClock.
func (c *duringClock) Now() time.Time {
	if do := c.do; do != nil {
		c.do = nil
		do()
	}
	return c.PassiveClock.Now()
}

func TestWritesAreNoted(t *testing.T) {
	h := idleHub()
	w := idleWorkload(t, "w1", index.Identity{})
	h.Watcher = w.Watcher
	r := (&requirementReconciler{
		hub: h, workloads: h.Clusters, clock: testingclock.NewFakePassiveClock(time.Now()), metrics: downstream.New(nil),
	}).complete(0, 0)
	parse := func(uid, version string) *unstructured.Unstructured {
		return agenttest.Parse(t, `{'metadata':{'name':'db','namespace':'foo','uid':'`+uid+`','resourceVersion':'`+version+`'}}`)
	}
	claim := parse("claim", "1")
	s := &downstream.Scope{Workload: w, Facts: plan.Facts{ObjectRequest: w.Request(ownershiptest.InBar("").Kind, client.ObjectKeyFromObject(claim)), Claim: claim}}
	if err := s.ObserveClaim(parse("claim", "2")); err != nil {
		t.Error(err)
	}
	if err := s.ObserveClaim(parse("other", "3")); err == nil || s.Latest().GetUID() != "claim" {
		t.Errorf("want an answer with another object not to count, got %v", err)
	}
	r.observe(s, ownershiptest.InBar("db"), parse("hub", "4"))
	want := []index.Version{{UID: "claim", ResourceVersion: "2"}, {UID: "hub", ResourceVersion: "4"}}
	if diff := cmp.Diff(want, s.Wrote); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
