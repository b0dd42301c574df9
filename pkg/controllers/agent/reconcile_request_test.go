// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestRequestsReconcile(t *testing.T) {
	const requestedAt = fleetv1alpha1.ReconcileRequestedAtAnnotation
	claim := func(metadata string) string { return `{'metadata':{'name':'db',` + metadata + `},'spec':{'a':'b'}}` }
	for name, tc := range map[string]struct {
		reason     string
		old, now   string
		asks, only bool
	}{
		"First": {
			reason: "The annotation comes. The API server counts versions and notes who wrote.",
			old:    claim(`'resourceVersion':'1'`), now: claim(`'resourceVersion':'2','managedFields':[{}],'annotations':{'` + requestedAt + `':'1'}`),
			asks: true, only: true,
		},
		"Again": {
			reason: "Another value.", old: claim(`'annotations':{'` + requestedAt + `':'1','a':'b'}`), now: claim(`'annotations':{'` + requestedAt + `':'2','a':'b'}`),
			asks: true, only: true,
		},
		"WithMore": {
			reason: "What else has changed does not wait.",
			old:    claim(`'annotations':{'` + requestedAt + `':'1'}`), now: claim(`'annotations':{'` + requestedAt + `':'2','a':'b'}`), asks: true,
		},
		"WithSpec": {
			reason: "Nor does the spec.",
			old:    claim(`'generation':1`), now: `{'metadata':{'name':'db','generation':2,'annotations':{'` + requestedAt + `':'2'}},'spec':{'a':'c'}}`, asks: true,
		},
		"Same":    {reason: "It was said before.", old: claim(`'annotations':{'` + requestedAt + `':'1'}`), now: claim(`'annotations':{'` + requestedAt + `':'1','a':'b'}`)},
		"Removed": {reason: "To take it back is no request.", old: claim(`'annotations':{'` + requestedAt + `':'1'}`), now: claim(`'generation':1`)},
		"New":     {reason: "A claim that is new is looked at anyway.", now: claim(`'annotations':{'` + requestedAt + `':'1'}`)},
	} {
		t.Run(name, func(t *testing.T) {
			e := kindwatch.Event{Type: kindwatch.Added, Object: agenttest.Parse(t, tc.now)}
			before := e.Object.DeepCopy()
			if tc.old != "" {
				e.Type, e.Old = kindwatch.Updated, agenttest.Parse(t, tc.old)
			}
			if got, only := requestsReconcile(e), onlyRequestsReconcile(e); got != tc.asks || only != tc.only {
				t.Errorf("%s want %t and %t, got %t and %t", tc.reason, tc.asks, tc.only, got, only)
			}
			if fmt.Sprint(before) != fmt.Sprint(e.Object) {
				t.Errorf("what the watch keeps is shared and was changed: %v", e.Object)
			}
		})
	}
}

func TestRequestResetsTheBackOffOncePerInterval(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	r := (&requirementReconciler{hub: idleHub(), clock: now, metrics: downstream.New(nil)}).complete(0, 0)
	// No failure is retried during the test.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[multicluster.ObjectRequest](time.Hour, time.Hour)
	q := workqueue.NewTypedRateLimitingQueue(limiter)
	t.Cleanup(q.ShutDown)
	if err := r.hub.Requirements.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	req := multicluster.ObjectRequest{ClusterName: "w1"}
	fails := func(times int) {
		for range times {
			q.AddRateLimited(req)
		}
	}
	failures := func(why string, want int) {
		t.Helper()
		if got := q.NumRequeues(req); got != want {
			t.Errorf("%s: want a back-off of %d failures, got %d", why, want, got)
		}
	}
	fails(5)
	r.resetBackOff(req)
	failures("there was no request", 5)
	if left := r.noteReconcileRequest(req); left != 0 {
		t.Errorf("want the first request to be answered now, got %s", left)
	}
	r.ledger.Edit(req, func(e *index.Entry) { e.Pushed.Hash, e.Shown = "in vain", "in vain" })
	r.resetBackOff(req)
	failures("the owner made a request", 0)
	if e := r.ledger.Entry(req); e.Pushed != (index.PushedClaim{}) || e.Shown != "" {
		t.Errorf("want what was in vain to be tried again, got %+v", e)
	}

	fails(3)
	for range 1000 {
		if left := r.noteReconcileRequest(req); left != index.ReconcileRequestInterval {
			t.Fatalf("want the next request to wait for %s, got %s", index.ReconcileRequestInterval, left)
		}
		r.resetBackOff(req)
	}
	failures("more frequent requests do not reset the back-off", 3)
	now.SetTime(now.Now().Add(index.ReconcileRequestInterval))
	r.resetBackOff(req)
	failures("all of them are answered at once, in time", 0)
	fails(1)
	r.resetBackOff(req)
	failures("and once", 1)
}

// TestConflictIsRetriedSoonAfterManyFailures: no event follows a conflict whose object was read.
func TestConflictIsRetriedSoonAfterManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&requirementReconciler{hub: idleHub(), clock: clock.RealClock{}, metrics: downstream.New(nil)}).complete(0, 0)
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[multicluster.ObjectRequest](time.Hour, time.Hour))
		defer q.ShutDown()
		if err := r.hub.Requirements.Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		req := multicluster.ObjectRequest{ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
		s := &downstream.Scope{Facts: plan.Facts{ObjectRequest: req, Claim: agenttest.Parse(t, `{'metadata':{'name':'db'}}`)}}
		for name, tc := range map[string]struct {
			err  error
			want int
		}{
			"Conflict": {apierrors.NewConflict(schema.GroupResource{}, "db", errWatchBehind), 1},
			"Canceled": {context.Canceled, 0},
		} {
			if _, err := r.reportStatus(t.Context(), s, downstream.Outcome{}, tc.err); !errors.Is(err, tc.err) {
				t.Errorf("%s: want the error, got %v", name, err)
			}
			q.AddRateLimited(req)
			<-time.After(condition.Soon)
			synctest.Wait()
			if got := q.Len(); got != tc.want {
				t.Errorf("%s: want %d requests soon, got %d", name, tc.want, got)
			}
			for range q.Len() {
				got, _ := q.Get()
				q.Done(got)
			}
		}
	})
}

func TestClaimIsReconciledWhenItsOwnerAsksForIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.LimitInHub(10)
	created := time.Now()
	f.CreateClaim("db")
	f.WaitForMessage("db", fleetv1alpha1.ReasonRejected, "too large for the hub")
	f.WaitForIdle()
	attempts := func() int { return len(f.HubRequests.Filter(http.MethodPatch, "/mysqlinstances/db")) }
	requests := 0
	ask := func() {
		t.Helper()
		requests++
		f.AnnotateClaim("db", fleetv1alpha1.ReconcileRequestedAtAnnotation, fmt.Sprint(requests))
	}

	before, began := attempts(), time.Now()
	ask()
	f.Within("the hub is queried again", func() error {
		if attempts() == before {
			return errors.New("it is not")
		}
		return nil
	})
	for range 50 {
		ask()
	}
	f.WaitForIdle()
	n := attempts() - before
	// A machine may be so slow that the claim is also retried.
	most := 1 + int(time.Since(began)/index.ReconcileRequestInterval) + int(time.Since(created)/condition.SlowInterval)
	if n > most {
		t.Errorf("want %d requests to be worth %d attempts at most, got %d", requests, most, n)
	}

	// No event signals that the hub would accept it now, and a retry would take a minute or more.
	for _, obj := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{}} {
		obj.SetName(f.Class)
		if err := f.Hub.Delete(f.Ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	f.Within("the policy is not in force any more", func() error {
		u := f.NewClaim(f.Target, "probe")
		u.Object["spec"] = map[string]any{"storageGB": int64(20)}
		return f.Hub.Create(f.Ctx, u, client.DryRunAll)
	})
	ask()
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if value, travelled := f.WaitForPushed("db").GetAnnotations()[fleetv1alpha1.ReconcileRequestedAtAnnotation]; travelled {
		t.Errorf("want the request to stay where it is, got %q in the hub", value)
	}
}
