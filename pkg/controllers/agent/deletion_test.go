// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestNothingIsDeletedBeforeTheHubIsKnown(t *testing.T) {
	// The watch of the hub has not begun. There are no clients: any request would panic.
	h := idleHub()
	h.Watcher = idleWorkload(t, "hub", index.Identity{}).Watcher
	kind := ownershiptest.InBar("").Kind
	h.Watcher.Set(index.OwnerClaims, kind)
	r := &requirementReconciler{hub: h}
	claim := agenttest.Parse(t, `{'metadata': {'name': 'db', 'namespace': 'foo', 'finalizers': ['agent.masthead.dev/requirement']}}`)
	claim.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	s := &downstream.Scope{Facts: offeredClaim(claim)}
	s.Protected = true
	if state, _ := h.Watcher.State(kind); state == kindwatch.StateSynced {
		t.Fatal("the watch has begun")
	}
	_ = r.observeHub(t.Context(), s)
	if p := plan.Decide(s.Facts); len(p.Steps) > 0 || !p.SkipReport {
		t.Errorf("want a deletion to wait, got %+v", p)
	}
	s.Vanished = true
	if p := plan.Decide(s.Facts); len(p.Steps) > 0 || !p.SkipReport || !p.RequeueSlowly {
		t.Errorf("want a claim that vanished to wait and to be looked at again, got %+v", p)
	}
}

// TestClaimIsReleasedOnceInAState: the answer that deletes a claim is no newer state, so that the watch's next event
// alone says that the claim is gone. Another event may come before.
func TestClaimIsReleasedOnceInAState(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		answer error
		kept   []string
		next   string
		want   int
	}{
		"Released":   {reason: "The same patch would find no claim.", want: 1},
		"OtherState": {reason: "It bears our finalizer again.", next: "9", want: 2},
		"NotFound":   {reason: "Its kind may not be served for a moment.", answer: apierrors.NewNotFound(schema.GroupResource{}, "db"), want: 2},
		"Kept":       {reason: "A webhook of the cluster may keep our finalizer.", kept: []string{agenttest.OurFinalizer}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			claim, _ := carried(t)
			claim.SetFinalizers([]string{agenttest.OurFinalizer})
			claim.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			r, s, server, _ := teller(t, claim)
			r.workloads, server.answer, server.finalizers = r.hub.Clusters, tc.answer, tc.kept
			if err := r.release(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s = &downstream.Scope{Workload: s.Workload, Facts: offeredClaim(claim.DeepCopy())}
			s.Claim.SetResourceVersion(tc.next)
			if err := r.release(t.Context(), s); err != nil || len(server.requests) != tc.want {
				t.Errorf("%s want %d patches, got %v, %v", tc.reason, tc.want, server.requests, err)
			}
		})
	}
}

// TestDeletionReadsTheHub: the watch does not have the object of a deleted claim, or does not have it any more.
func TestDeletionReadsTheHub(t *testing.T) {
	claim, hub := carried(t)
	r, s, _, _ := teller(t, claim)
	var deleted deletions
	r.hubReader, r.hubClient = liveReader{obj: hub}, &deleted
	_, err := r.removeAt(t.Context(), s, plan.Step{At: ownershiptest.InBar("db"), Policy: fleetv1alpha1.DeletionPolicyDelete})
	if p, ok := errors.AsType[*condition.Error](err); !ok || p.Reason != fleetv1alpha1.ReasonDeleting || !slices.Equal(deleted.uids, []types.UID{hub.GetUID()}) {
		t.Errorf("want it to be deleted and waited for, got %v and deletions of %v", err, deleted.uids)
	}
}

// TestDeletionThatHasEndedIsNotWaitedFor: the watch reports the end between the plan and its step, when no claim waits
// for the place.
func TestDeletionThatHasEndedIsNotWaitedFor(t *testing.T) {
	claim, hub := carried(t)
	hub.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	r, s, server, _ := teller(t, claim)
	r.hubReader = server
	step := plan.Step{At: ownershiptest.InBar("db"), Saw: hub, Policy: fleetv1alpha1.DeletionPolicyDelete}
	if _, err := r.removeAt(t.Context(), s, step); err != nil {
		t.Errorf("want nothing to be left, got %v", err)
	}
}

// deletions is a hub that records the preconditions of deletions.
type deletions struct {
	client.Writer

	uids []types.UID
}

func (d *deletions) Delete(_ context.Context, _ client.Object, opts ...client.DeleteOption) error {
	d.uids = append(d.uids, *(&client.DeleteOptions{}).ApplyOptions(opts).Preconditions.UID)
	return nil
}

// TestClaimIsNotReleasedWhileACreationMayLand deletes a claim whose object is gone from the hub, shortly after one of
// its creations was given up and a later one was answered.
func TestClaimIsNotReleasedWhileACreationMayLand(t *testing.T) {
	const grace = 10 * time.Second
	for name, tc := range map[string]struct {
		reason       string
		shown        *condition.Error
		later, reads time.Duration
		want         time.Duration
	}{
		"May":      {reason: "It may still land.", later: time.Second, want: grace - time.Second},
		"Deleting": {reason: "That an object was deleted says nothing about another.", shown: plan.Deleting("MySQLInstance", "bar", "db"), later: time.Second, want: grace - time.Second},
		"SlowRead": {reason: "It may have landed after the hub was read.", later: grace - time.Second, reads: time.Minute, want: time.Second},
		"Cannot":   {reason: "It cannot land any more.", later: grace},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := carried(t)
			claim.Object["status"] = propagation.BuildStatus(claim, hub, true, propagation.Condition(claim, tc.shown), time.Unix(0, 0))
			r, s, server, now := teller(t, claim)
			r.hubReader = slowServer{apiServer: server, takes: func() { now.SetTime(now.Now().Add(tc.reads)) }}
			r.inFlight = index.NewInFlight(now, grace)
			r.inFlight.Wait(s.ObjectRequest)
			now.SetTime(now.Now().Add(time.Hour)) // No predecessor's creation is in flight.
			place := ownershiptest.InBar("db")
			r.inFlight.Sent(s.ObjectRequest, place, context.DeadlineExceeded)
			r.inFlight.Sent(s.ObjectRequest, place, nil)
			now.SetTime(now.Now().Add(tc.later))

			p := plan.Plan{SkipReport: true, Steps: []plan.Step{{Do: plan.Remove, At: place}, {Do: plan.AwaitCreations}}}
			o, err := r.apply(t.Context(), s, p)
			if err != nil || o.RequeueAfter != tc.want {
				t.Errorf("%s want a wait of %s, got %s, %v", tc.reason, tc.want, o.RequeueAfter, err)
			}
		})
	}
}

// slowServer takes its time to answer a read.
type slowServer struct {
	*apiServer

	takes func()
}

func (s slowServer) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	s.takes()
	return s.apiServer.Get(ctx, key, obj, o...)
}
