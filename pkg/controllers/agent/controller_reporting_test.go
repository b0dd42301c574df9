// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// apiServer records the requested writes, and has one answer to everything.
type apiServer struct {
	client.Client

	answer   error
	requests []string

	// finalizers and labels are those of a claim that was written.
	finalizers []string
	labels     map[string]string
}

func (a *apiServer) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.answer
}

func (a *apiServer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	err := a.note("claim", obj, patch)
	obj.SetUID("1")
	obj.SetFinalizers(a.finalizers)
	obj.SetLabels(a.labels)
	return err
}

func (a *apiServer) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	a.requests = append(a.requests, "late fields")
	return a.answer
}

func (a *apiServer) Status() client.SubResourceWriter { return statusWriter{server: a} }

func (a *apiServer) note(what string, obj client.Object, patch client.Patch) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	a.requests = append(a.requests, what+" "+string(data))
	return a.answer
}

// statusWriter writes the status of objects to an apiServer.
type statusWriter struct {
	client.SubResourceWriter

	server *apiServer
}

func (w statusWriter) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.server.note("status", obj, patch)
}

// teller is a reconciler that only reports: it has no API servers except its scope's workload cluster, which has no
// objects.
func teller(t *testing.T, claim *unstructured.Unstructured) (*requirementReconciler, *downstream.Scope, *apiServer, *testingclock.FakePassiveClock) {
	t.Helper()
	now := testingclock.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	server := &apiServer{answer: apierrors.NewNotFound(ownershiptest.InBar("").Kind.GroupResource(), "db")}
	w := idleWorkload(t, "w1", index.Identity{})
	w.Client, w.Reader = server, server
	w.Owner = func() hubidentity.Owner { return hubidentity.Owner{ID: agenttest.OurHub} }
	h := idleHub()
	h.Watcher = idleWorkload(t, "hub", index.Identity{}).Watcher
	r := (&requirementReconciler{hub: h, clock: now, metrics: downstream.New(prometheus.NewRegistry())}).complete(0, 0)
	s := &downstream.Scope{Workload: w, Facts: offeredClaim(claim)}
	return r, s, server, now
}

// down returns the facts of a claim whose object and Secrets flow down.
func down(r *requirementReconciler, s *downstream.Scope, hub *unstructured.Unstructured) downstream.Facts {
	return r.reports.Facts(s, downstream.Outcome{Plan: plan.Plan{Down: plan.Down{Object: hub, WithSecrets: true}}})
}

// carried returns a claim in its state after a push, and its object in the hub.
func carried(t *testing.T) (claim, hub *unstructured.Unstructured) {
	t.Helper()
	claim = agenttest.Parse(t, `{'metadata':{'namespace':'foo','name':'db','uid':'1','generation':3},'spec':{}}`)
	hub = agenttest.Parse(t, `{'metadata':{'namespace':'bar','name':'db','uid':'2','generation':7},'spec':{},`+
		`'status':{'address':'a','conditions':[{'type':'Ready','status':'True','observedGeneration':7}]}}`)
	hub.SetAnnotations(ownership.Source{Identifier: "w1", Namespace: "foo"}.Annotations())
	shown := propagation.BuildStatus(claim, hub, true, propagation.Condition(claim, nil), time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC))
	claim.Object["status"] = shown
	claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: ownership.RecordFor(claim, hub)})
	return claim, hub
}

func TestClaimThatIsReconciledTooEarlyIsNotWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(claim, hub *unstructured.Unstructured)
		writes int
	}{
		"Unchanged": {reason: "What the hub has observed stays observed.", edit: func(_, _ *unstructured.Unstructured) {}},
		"HubChanged": {
			reason: "What the hub says meanwhile is shown.", writes: 1,
			edit: func(_, hub *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(hub.Object, "b", "status", "address")
			},
		},
		"Edited": {
			reason: "The hub has not observed an edit that was not carried.", writes: 1,
			edit: func(claim, _ *unstructured.Unstructured) { claim.SetGeneration(4) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := carried(t)
			tc.edit(claim, hub)
			r, s, server, _ := teller(t, claim)
			s.Pairing, s.Target, s.Hub.Recorded = nil, nil, hub
			p := plan.Decide(s.Facts)
			if !p.SkipReport || p.Down.Object == nil {
				t.Fatalf("want a plan that shows the status and tells nothing, got %+v", p)
			}
			o, err := r.apply(t.Context(), s, p)
			if _, err = r.reportStatus(t.Context(), s, o, err); err != nil {
				t.Fatal(err)
			}
			if len(server.requests) != tc.writes {
				t.Errorf("%s want %d writes, got %v", tc.reason, tc.writes, server.requests)
			}
		})
	}
}

// TestReasonThatAClaimShowsMakesNoSeries: users who may write a claim's status choose the reason.
func TestReasonThatAClaimShowsMakesNoSeries(t *testing.T) {
	claim, hub := carried(t)
	r, s, _, _ := teller(t, claim)
	r.ledger.Edit(s.ObjectRequest, func(e *index.Entry) { e.Reason = fleetv1alpha1.ReasonSynced })
	for _, chosen := range []string{"a", "b", "c"} {
		shown := propagation.Condition(claim, &condition.Error{Reason: chosen})
		claim.Object["status"] = propagation.BuildStatus(claim, hub, true, shown, r.clock.Now())
		if _, err := r.reports.Report(t.Context(), s, downstream.Outcome{Plan: plan.Plan{Down: plan.Down{Object: hub}}, KeepCondition: true}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.ledger.Entry(s.ObjectRequest).Reason; got != fleetv1alpha1.ReasonSynced {
		t.Errorf("want what was counted to stay counted, got %q", got)
	}
}

// TestHolderIsNotReportedBeforeItMayBe fails the check whether the claim's identity may know the name's holder.
func TestHolderIsNotReportedBeforeItMayBe(t *testing.T) {
	const holder = "w2/theirs"
	claim, _ := carried(t)
	r, s, server, now := teller(t, claim)
	r.hubReader = &apiServer{answer: errors.New("dial tcp 10.0.0.1:443: i/o timeout")}
	problem := &condition.Error{Reason: fleetv1alpha1.ReasonConflict, Message: holder}
	p := plan.Plan{Problem: problem, Holder: holder, Steps: []plan.Step{{Do: plan.CheckVisibility, At: ownershiptest.InBar("db")}}}
	o, failure := r.apply(t.Context(), s, p)
	if failure == nil || o.Problem != nil || o.Holder != "" {
		t.Errorf("want no report, got %+v, %v", o, failure)
	}
	for _, o := range []downstream.Outcome{o, {Plan: plan.Plan{Problem: problem, Holder: holder}}} {
		for range 2 {
			if _, err := r.reportStatus(t.Context(), s, o, failure); err == nil {
				t.Error("want it to be tried again")
			}
			now.SetTime(now.Now().Add(downstream.FailurePatience))
		}
	}
	if got := strings.Join(server.requests, "\n"); !strings.Contains(got, fleetv1alpha1.ReasonSyncFailing) || strings.Contains(got, holder) {
		t.Errorf("want the failure to be reported and not the holder, got %s", got)
	}
}

func TestClusterThatDoesNotAnswerIsNotQueriedAgain(t *testing.T) {
	unanswered, answered := errors.New("context deadline exceeded"), apierrors.NewInternalError(errors.New("etcd"))
	for name, tc := range map[string]struct {
		reason   string
		answer   error
		secrets  bool
		requests int // While the failure may be transient.
		lasting  int
	}{
		"Unanswered": {reason: "One timeout is enough. It is reported if the failure persists.", answer: unanswered, requests: 1, lasting: 1},
		"Answered":   {reason: "Neither Secrets nor the status wait for late fields.", answer: answered, secrets: true, requests: 2, lasting: 1},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := carried(t)
			_ = unstructured.SetNestedField(hub.Object, "mysql", "spec", "compositionRef", "name")
			_ = unstructured.SetNestedField(hub.Object, "b", "status", "address")
			r, s, server, now := teller(t, claim)
			server.answer = tc.answer
			// Pulling Secrets starts with what blocks them.
			s.BlockingSecrets = []types.NamespacedName{{Name: "not-looked-at"}}
			facts := down(r, s, hub)
			o := facts.Outcome
			failure := r.bringDown(t.Context(), s, &o, downstream.DecideDown(facts))
			if failure == nil || (s.BlockingSecrets == nil) != tc.secrets {
				t.Errorf("%s want the Secrets to be looked at: %v, got %v in the way and %v", tc.reason, tc.secrets, s.BlockingSecrets, failure)
			}
			_, _ = r.reportStatus(t.Context(), s, o, failure)
			if len(server.requests) != tc.requests {
				t.Errorf("%s want %d requests, got %v", tc.reason, tc.requests, server.requests)
			}
			before := len(server.requests)
			now.SetTime(now.Now().Add(downstream.FailurePatience))
			_, _ = r.reportStatus(t.Context(), s, o, failure)
			if got := server.requests[before:]; len(got) != tc.lasting || !strings.Contains(got[0], fleetv1alpha1.ReasonSyncFailing) {
				t.Errorf("%s want the failure to be reported, got %v", tc.reason, got)
			}
		})
	}
}

func TestRequestsThatAreNotAnsweredAreMarked(t *testing.T) {
	claim, hub := carried(t)
	claim.SetAnnotations(nil)
	_, filledIn := carried(t)
	_ = unstructured.SetNestedField(filledIn.Object, "mysql", "spec", "compositionRef", "name")
	for name, ask := range map[string]func(*requirementReconciler, *downstream.Scope) error{
		"Finalizer": func(r *requirementReconciler, s *downstream.Scope) error {
			return r.protect(t.Context(), s, ownershiptest.InBar("db"))
		},
		"Release": func(r *requirementReconciler, s *downstream.Scope) error {
			return r.release(t.Context(), s)
		},
		"LateFields": func(r *requirementReconciler, s *downstream.Scope) error {
			return r.reports.Initialise(t.Context(), s, filledIn, downstream.DecideDown(down(r, s, filledIn)).Late)
		},
		"Record": func(r *requirementReconciler, s *downstream.Scope) error {
			record, _ := downstream.DecideRecord(down(r, s, hub))
			return r.reports.Record(t.Context(), s, hub, record)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, server, _ := teller(t, claim)
			server.answer = errors.New("EOF")
			if err := ask(r, s); !hubaccess.IsUnanswered(err) {
				t.Errorf("want an error that says so, got %v", err)
			}
			server.answer = apierrors.NewInternalError(errors.New("etcd"))
			if err := ask(r, s); err == nil || hubaccess.IsUnanswered(err) {
				t.Errorf("want an answer to be one, got %v", err)
			}
		})
	}
}

func TestVanishedClaimIsNotReported(t *testing.T) {
	claim, hub := carried(t)
	r, s, server, _ := teller(t, claim)
	s.Vanished = true
	o := downstream.Outcome{Plan: plan.Plan{
		Problem: plan.Deleting("MySQLInstance", "bar", "db"), RequeueAfter: time.Second, Down: plan.Down{Object: hub},
	}}
	result, err := r.reportStatus(t.Context(), s, o, nil)
	if err != nil || result.RequeueAfter != time.Second {
		t.Errorf("want it to be looked at again after a second, got %v, %v", result, err)
	}
	if got := r.ledger.Entry(s.ObjectRequest).Reason; len(server.requests) != 0 || got != "" {
		t.Errorf("want nothing to be written or counted, got %v and %q", server.requests, got)
	}
}

// TestStatusDoesNotWaitForTheRecord has a claim without a status, and a workload cluster that may refuse applies to
// claims.
func TestStatusDoesNotWaitForTheRecord(t *testing.T) {
	const late, record, synced, rejected = "late fields", "record", "True/" + fleetv1alpha1.ReasonSynced, "False/" + fleetv1alpha1.ReasonWorkloadRejected
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "mysqlinstances"}, "db", errors.New("no"))
	for name, tc := range map[string]struct {
		reason  string
		edit    func(claim, hub *unstructured.Unstructured)
		problem *condition.Error
		drops   bool // whether the workload cluster drops spec fields shown to it
		refusal error
		want    []string
		then    []string // On the next reconcile.
	}{
		"Accepted": {reason: "Users wait for the status.", want: []string{synced, record}},
		"LateFields": {
			reason: "Fields change the generation that the status observes.",
			edit: func(_, hub *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(hub.Object, "mysql", "spec", "compositionRef", "name")
			},
			want: []string{late, synced, record},
		},
		"Announced": {
			reason: "Its conditions say that what the claim has announced is there. That is a request less.",
			edit:   func(claim, _ *unstructured.Unstructured) { ownership.SetRecord(claim, "bar//1") },
			want:   []string{synced}, then: []string{},
		},
		"AnnouncedWithoutStatus": {
			reason: "Nothing would say that there was an object.",
			edit: func(claim, hub *unstructured.Unstructured) {
				ownership.SetRecord(claim, "bar//1")
				hub.Object["status"] = map[string]any{"address": "a"}
				hub.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)))
			},
			want: []string{synced, record}, then: []string{},
		},
		"AnnouncedAndFieldsInVain": {
			reason: "That fields do not stay is no reason not to record the object.", drops: true,
			edit: func(claim, hub *unstructured.Unstructured) {
				ownership.SetRecord(claim, "bar//1")
				_ = unstructured.SetNestedField(hub.Object, "mysql", "spec", "compositionRef", "name")
				hub.Object["status"] = map[string]any{"address": "a"}
				hub.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)))
			},
			want: []string{late, synced, record}, then: []string{},
		},
		"Problem": {
			reason:  "What else is wrong with the claim is no reason either: its object would not be missed.",
			problem: &condition.Error{Reason: fleetv1alpha1.ReasonTargetNamespaceChanged},
			edit: func(claim, hub *unstructured.Unstructured) {
				claim.Object["status"] = propagation.BuildStatus(claim, hub, true, propagation.Condition(claim, nil), time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC))
			},
			want: []string{record, "False/" + fleetv1alpha1.ReasonTargetNamespaceChanged}, then: []string{},
		},
		"AnnouncedElsewhere": {
			reason: "It would be looked for there.",
			edit: func(claim, hub *unstructured.Unstructured) {
				ownership.SetRecord(claim, "foo//1")
				claim.Object["status"] = propagation.BuildStatus(claim, hub, true, propagation.Condition(claim, nil), time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC))
			},
			want: []string{record}, then: []string{},
		},
		"AnotherRecorded": {
			reason: "Another object is in place of the recorded one.",
			edit: func(claim, _ *unstructured.Unstructured) {
				claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: "bar/3/1"})
			},
			want: []string{synced, record}, then: []string{},
		},
		"Refused": {
			reason: "The refusal is reported once, and not taken back each time that the claim is looked at.", refusal: refusal,
			want: []string{synced, record}, then: []string{record, rejected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := carried(t)
			claim.SetAnnotations(nil)
			delete(claim.Object, "status")
			if tc.edit != nil {
				tc.edit(claim, hub)
			}
			r, s, server, _ := teller(t, claim)
			server.answer = nil
			workload := &refusingServer{apiServer: server, claim: claim, refusal: tc.refusal, drops: tc.drops}
			s.Workload.Client, s.Workload.Recorder = workload, events.NewFakeRecorder(10)
			for round, want := range [][]string{tc.want, tc.then} {
				if round > 0 && tc.then == nil {
					continue
				}
				workload.saw = []string{}
				s = &downstream.Scope{Workload: s.Workload, Facts: s.Facts}
				s.Claim = workload.claim
				p := plan.Plan{Problem: tc.problem, Down: plan.Down{Object: hub, WithSecrets: true}}
				if _, err := r.propagateDown(t.Context(), s, downstream.Outcome{Plan: p, Current: true}, nil); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, workload.saw); diff != "" {
					t.Errorf("%s round %d (-want +got):\n%s", tc.reason, round, diff)
				}
			}
		})
	}
}

// TestAnnouncementNamesWhereTheObjectWillBe: the object of a claim that has none yet is to be created elsewhere than
// announced.
func TestAnnouncementNamesWhereTheObjectWillBe(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		given  func(r *requirementReconciler, s *downstream.Scope)
		want   string
	}{
		"Nothing": {reason: "Nothing came of it.", given: func(*requirementReconciler, *downstream.Scope) {}, want: "bar//1"},
		"UnderWay": {
			reason: "What is created there may still come, and its status would be taken for that of the other place.",
			given: func(r *requirementReconciler, s *downstream.Scope) {
				r.inFlight = index.NewInFlight(r.clock, time.Minute)
				r.inFlight.Sent(s.ObjectRequest, s.PlaceIn("foo"), context.DeadlineExceeded)
			},
			want: "foo//1",
		},
		"There": {
			reason: "It has come, although the claim does not record it.",
			given: func(_ *requirementReconciler, s *downstream.Scope) {
				there := agenttest.Parse(t, `{'metadata':{'namespace':'foo','name':'db','uid':'2'}}`)
				there.SetAnnotations(s.Source.Annotations())
				s.Hub.Elsewhere = []plan.PlacedObject{{Place: s.PlaceIn("foo"), Object: there}}
			},
			want: "foo//1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := agenttest.Parse(t, `{'metadata':{'namespace':'foo','name':'db','uid':'1'},'spec':{}}`)
			claim.SetFinalizers(hubidentity.Owner{ID: agenttest.OurHub}.Protected(nil))
			ownership.SetRecord(claim, "foo//1")
			r, s, server, _ := teller(t, claim)
			workload := &refusingServer{apiServer: server, claim: claim}
			s.Workload.Client = workload
			tc.given(r, s)
			if err := r.protect(t.Context(), s, ownershiptest.InBar("db")); err != nil {
				t.Fatal(err)
			}
			if got := workload.claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation]; got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// refusingServer has one claim with a writable status, and a fixed answer to applies.
type refusingServer struct {
	*apiServer

	claim   *unstructured.Unstructured
	drops   bool
	refusal error

	// saw are the applied contents, the patched records, and the written statuses of the condition AgentSynced.
	saw []string
}

func (a *refusingServer) Apply(_ context.Context, c runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	a.saw = append(a.saw, "late fields")
	if a.refusal != nil {
		return a.refusal
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	applied := &unstructured.Unstructured{}
	if err = json.Unmarshal(data, &applied.Object); err != nil {
		return err
	}
	a.claim = a.claim.DeepCopy()
	if spec, ok := applied.Object["spec"]; ok && !a.drops {
		a.claim.Object["spec"] = spec
	}
	if data, err = json.Marshal(a.claim); err != nil {
		return err
	}
	return json.Unmarshal(data, c)
}

func (a *refusingServer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	written := &unstructured.Unstructured{}
	if err = json.Unmarshal(data, &written.Object); err != nil {
		return err
	}
	a.saw = append(a.saw, "record")
	if a.refusal != nil {
		return a.refusal
	}
	a.claim = a.claim.DeepCopy()
	ownership.SetRecord(a.claim, written.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation])
	obj.(*unstructured.Unstructured).Object = a.claim.DeepCopy().Object
	return nil
}

func (a *refusingServer) Status() client.SubResourceWriter { return refusingStatus{server: a} }

type refusingStatus struct {
	client.SubResourceWriter

	server *refusingServer
}

func (w refusingStatus) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	written := map[string]any{}
	if err = json.Unmarshal(data, &written); err != nil {
		return err
	}
	w.server.claim = w.server.claim.DeepCopy()
	w.server.claim.Object["status"] = written["status"]
	shown, _ := propagation.ShownAgentSynced(w.server.claim)
	w.server.saw = append(w.server.saw, string(shown.Status)+"/"+shown.Reason)
	obj.(*unstructured.Unstructured).Object = w.server.claim.DeepCopy().Object
	return nil
}
