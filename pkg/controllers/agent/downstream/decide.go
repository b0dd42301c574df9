// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Facts are the inputs of what is decided after the steps of a plan: the plan's, with the claim as it is now, and what
// came of the steps. Altered is as in Scope, Entry the ledger's, Patience as in Reporter.
type Facts struct {
	plan.Facts
	Outcome
	Altered  string
	Entry    index.Entry
	Now      time.Time
	Patience time.Duration
}

// Down is what goes down beside the status.
type Down struct {
	// Secrets means that Secrets are pulled. Late are the fields to apply; nil if the claim shows them, or they wait.
	Secrets bool
	Late    map[string]any

	// Record is what the claim is to record before it shows the status; empty if nothing new.
	Record string

	// RequeueAfter is when to decide again; zero if an event follows.
	RequeueAfter time.Duration
}

// DecideDown decides what goes down before the status. Like DecideRecord and DecideReport it is a pure function.
func DecideDown(f Facts) Down {
	hub := f.Down.Object
	if f.skips() || !f.Down.WithSecrets || hub == nil || hub.GetDeletionTimestamp() != nil {
		return Down{}
	}
	d := Down{Secrets: true}
	if _, reported := propagation.ShownAgentSynced(f.Claim); reported { // Users wait for the first status.
		d.Record, d.RequeueAfter = DecideRecord(f)
	}
	if late, changes := propagation.LateSpec(f.Claim, hub, f.Form); changes && f.Entry.Shown != objects.Digest(late) {
		if left := propagation.AwaitsLateFields(hub, f.Now, f.Patience); left > 0 {
			d.RequeueAfter = left
		} else {
			d.Late = late
		}
	}
	return d
}

// DecideRecord decides what the claim is to record of its object in the hub, or how long that waits; nothing if the
// object is recorded, or the claim's status implies it.
func DecideRecord(f Facts) (record string, left time.Duration) {
	hub := f.Down.Object
	record = ownership.RecordFor(f.Claim, hub)
	if was, _ := ownership.GetRecord(f.Claim); was.UID == "" && was.Namespace == hub.GetNamespace() && !was.Existed(f.Claim) {
		// The object is new, and its status will say that it exists.
		left = propagation.AwaitsLateFields(hub, f.Now, f.Patience)
	}
	switch {
	case ownership.Records(f.Claim, hub), f.Entry.Recorded == record:
		return "", 0
	case left > 0:
		return "", left
	}
	return record, 0
}

// Report is what a claim is to show.
type Report struct {
	// Condition is AgentSynced. New means that it is not kept.
	Condition metav1.Condition
	New       bool

	// Annotated is the claim with another conflict annotation, Status the status to write, and Event the type of the event
	// about it; nil or empty if there is nothing to write.
	Annotated *unstructured.Unstructured
	Status    map[string]any
	Event     string

	// AwaitsStatus means that the first status waits for the hub's.
	AwaitsStatus bool
	RequeueAfter time.Duration // As in Down.
}

// DecideReport decides what a claim is to show.
func DecideReport(f Facts) Report {
	shown, isShown := propagation.ShownAgentSynced(f.Claim)
	out := Report{Condition: shown, RequeueAfter: f.RequeueAfter}
	switch {
	case f.Vanished, f.skips(), f.KeepCondition && !isShown:
		return out
	case f.KeepCondition:
		// The hub's object still matches the claim if it did, and the claim has not changed since.
		f.Current = f.Current || shown.Status == metav1.ConditionTrue && shown.ObservedGeneration == f.Claim.GetGeneration()
	default:
		out.Condition, out.New = propagation.Condition(f.Claim, f.Problem), true
		if f.Problem == nil && f.Altered != "" {
			out.Condition.Message = "The hub holds this claim, except for " + multicluster.BoundedText(f.Altered) +
				", which its admission or schema changes."
		}
		if !f.IsPaused() { // A paused claim has no result.
			out.Annotated = WithConflict(f.Claim, f.Holder)
		}
		if left := propagation.AwaitsFirstStatus(f.Claim, f.Down.Object, f.Now, f.Patience); f.Problem == nil && left > 0 {
			out.AwaitsStatus, out.RequeueAfter = true, left
			return out
		}
	}
	status := propagation.BuildStatus(f.Claim, f.Down.Object, f.Current, out.Condition, f.Now)
	if propagation.StatusDiffers(f.Claim, status) && f.Entry.Pruned != prunedStatus(f.Claim, out.Condition.Reason, status) {
		out.Status, out.Event = status, f.event(out.Condition.Reason)
	}
	return out
}

// event returns the type of the event about a reason; nothing if it was reported before, or users expect it.
func (f *Facts) event(reason string) string {
	last, reported := propagation.ShownAgentSynced(f.Claim)
	if pruned := f.Entry.Pruned; !reported && pruned.UID == f.Claim.GetUID() {
		last.Reason, reported = pruned.Reason, pruned.Reason != ""
	}
	switch {
	case reported && last.Reason == reason, f.Problem == nil && !reported, reason == fleetv1alpha1.ReasonDeleting:
		return ""
	case f.Problem == nil, reason == fleetv1alpha1.ReasonReconcilePaused:
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// prunedStatus returns what to remember of a status written to a claim.
func prunedStatus(claim *unstructured.Unstructured, reason string, status map[string]any) index.PrunedStatus {
	shown, _ := claim.Object["status"].(map[string]any)
	return index.PrunedStatus{UID: claim.GetUID(), Reason: reason, Written: objects.Digest(withoutTransition(status)), Shown: objects.Digest(shown)}
}

// withoutTransition returns a status without our conditions' transition times: where these are dropped, every computed
// status has the current time.
func withoutTransition(status map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(status)
	conditions, _ := out["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && propagation.IsOurCondition(c["type"]) {
			delete(c, "lastTransitionTime")
		}
	}
	return out
}
