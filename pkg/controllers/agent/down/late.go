// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package down

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
)

// LateFields shows late-initialized fields in claims, and records their objects in the hub there.
type LateFields struct {
	Clock   clock.PassiveClock
	Metrics *metrics.Metrics
	Ledger  *ledger.Ledger

	// Patience is how long the first late-initialized fields wait for the others.
	Patience time.Duration
}

// Initialise shows late-initialized fields in the claim, and records its object in the hub there. A record that can
// wait for the status is left to Record.
func (r *LateFields) Initialise(ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured) (*condition.Problem, time.Duration, error) {
	if err := r.inheritLate(ctx, s); err != nil {
		return nil, 0, err
	}
	spec, changes := propagation.LateSpec(s.Claim, hub, s.Form)
	if !changes && (ownership.Records(s.Claim, hub) || recordCanWait(s.Claim)) {
		return nil, 0, nil
	}
	record := ownership.RecordFor(s.Claim, hub)
	if ownership.Announces(s.Claim) && (ownership.Records(s.Claim, hub) || recordCanWait(s.Claim)) {
		record = "" // The status will show that the announced object exists.
	}
	return r.write(ctx, s, hub, record, spec, changes)
}

// Record records the claim's object in the hub if the status, which users wait for and which is written by now, does
// not imply it. A status still to come will.
func (r *LateFields) Record(ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured) (*condition.Problem, time.Duration, error) {
	if s.AwaitsStatus || s.RecordTried || ownership.Records(s.Claim, hub) {
		return nil, 0, nil
	}
	spec, changes := propagation.LateSpec(s.Claim, hub, s.Form)
	if changes && !r.shownInVain(s, "", spec) {
		return nil, 0, nil // Requeued when these are due.
	}
	return r.write(ctx, s, hub, ownership.RecordFor(s.Claim, hub), spec, changes)
}

// recordCanWait reports whether a claim's status may be written before its record. A record of another object would be
// followed. A problem shown in the claim may be a failed record: whether it is over must be known before it is
// reported.
//
// Late fields cannot wait: they change the generation that a status has observed.
func recordCanWait(claim *unstructured.Unstructured) bool {
	_, outdated := ownership.RecordOf(claim)
	shown, told := propagation.ShownAgentSynced(claim)
	return !outdated && (!told || shown.Status == metav1.ConditionTrue)
}

// write shows fields in the claim and records its object in the hub, unless both should wait. An empty record means
// none. changes means that there are fields to show.
func (r *LateFields) write(
	ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured, record string, spec map[string]any, changes bool,
) (*condition.Problem, time.Duration, error) {
	// A record of another object is corrected at once; it would be followed.
	if _, outdated := ownership.RecordOf(s.Claim); ownership.Records(s.Claim, hub) || !outdated {
		if left := propagation.AwaitsLateFields(hub, r.Clock.Now(), r.Patience); left > 0 {
			return nil, left, nil
		}
	}
	if r.shownInVain(s, record, spec) {
		return nil, 0, nil
	}
	s.RecordTried = record != ""
	again := time.Duration(0)
	manager := s.Workload.Owner().FieldManager(fleetv1alpha1.LateInitFieldManager)
	if record != "" && ownership.Announces(s.Claim) {
		// Another field manager of ours owns the announcement, and an apply would conflict.
		if err := r.correctRecord(ctx, s, hub); err != nil {
			return r.refused(s, err)
		}
		if !changes {
			r.rememberShown(s, record, spec, hub)
			return nil, 0, nil
		}
	}
	claim, err := r.Apply(ctx, s, manager, record, spec)
	if conflictsWithRecord(err) {
		// The record was copied with another claim's manifest, or somebody has changed it.
		if err = r.correctRecord(ctx, s, hub); err == nil {
			claim, err = r.Apply(ctx, s, manager, record, spec)
		}
	}
	if fields := propagation.ConflictingFields(err, s.Form.LateFields(spec)); len(fields) > 0 {
		// The user set the same value as we did, so that it looked like ours; it is theirs and has to be pushed. The watch
		// does not requeue the claim for our own write.
		spec, _ = propagation.LateSpec(s.Claim, hub, s.Form, fields...)
		claim, err = r.Apply(ctx, s, manager, record, spec)
		again = lookAgain
	}
	if err != nil {
		return r.refused(s, err)
	}
	r.Metrics.Wrote(s.ClusterName, metrics.WriteLateFields)
	// The apply is unconditional, and its answer can contain changes by others that were never read. So it does not count
	// as written by this reconcile, and its event requeues the claim.
	s.Workload.Watcher.Observe(s.Kind, s.NamespacedName, claim)
	s.Claim = claim
	r.rememberShown(s, record, spec, hub)
	return nil, again, nil
}

// refused returns the result of a failed write.
func (r *LateFields) refused(s *scope.Scope, err error) (*condition.Problem, time.Duration, error) {
	if p := reason.OfWorkload(err, "write the late-initialized fields of this claim", reason.ReasonWorkloadRejected); p != nil {
		return p, condition.SlowRetry(), nil
	}
	return nil, 0, fmt.Errorf("cannot write the late-initialized fields of %s: %w", s.Request, err)
}

// inheritLate moves fields of our former field managers to this hub's: it applies the same, then makes the former ones
// give them up.
func (r *LateFields) inheritLate(ctx context.Context, s *scope.Scope) error {
	former := propagation.FormerManagers(s.Claim, s.Workload.Owner())
	if len(former) == 0 {
		return nil
	}
	var spec map[string]any
	if owned := propagation.LateOwned(s.Claim); len(owned) > 0 {
		have, _ := s.Claim.Object["spec"].(map[string]any)
		spec, _ = propagation.OwnedPart(owned, have).(map[string]any)
	}
	manager, record := s.Workload.Owner().FieldManager(fleetv1alpha1.LateInitFieldManager), s.Claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation]
	claim, err := r.Apply(ctx, s, manager, record, spec)
	if conflictsWithRecord(err) {
		// The record is somebody else's, and is corrected later.
		claim, err = r.Apply(ctx, s, manager, "", spec)
	}
	for _, manager := range former {
		if err == nil {
			claim, err = r.Apply(ctx, s, manager, "", nil)
		}
	}
	if err != nil {
		// A concurrent change by a user is an event.
		return fmt.Errorf("cannot take over the fields of former field managers in %s: %w", s.Request, err)
	}
	r.Metrics.Wrote(s.ClusterName, metrics.WriteLateFields)
	s.Workload.Watcher.Observe(s.Kind, s.NamespacedName, claim) // As above.
	s.Claim = claim
	return nil
}

// lookAgain is when to requeue a claim that turned out to contain more user intent than was pushed.
const lookAgain = time.Millisecond

// correctRecord overwrites a claim's record with that of an object of the hub.
func (r *LateFields) correctRecord(ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured) error {
	claim := s.Claim.DeepCopy()
	ownership.SetRecord(claim, ownership.RecordFor(claim, hub))
	return scope.PatchClaim(ctx, s, claim, metrics.WriteAnnotation, r.Metrics)
}

// Apply applies the fields that we manage in the very claim that was read: late-initialized fields and the record of
// its object in the hub. It does not recreate a deleted claim. Both are one apply, because each request counts. An
// empty record means none.
func (r *LateFields) Apply(
	ctx context.Context, s *scope.Scope, manager, record string, spec map[string]any,
) (*unstructured.Unstructured, error) {
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetGroupVersionKind(s.Kind.GroupVersionKind)
	claim.SetNamespace(s.Namespace)
	claim.SetName(s.Name)
	claim.SetUID(s.Claim.GetUID())
	if record != "" {
		claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: record})
	}
	if len(spec) > 0 {
		claim.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	err := s.Workload.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(claim), client.FieldOwner(manager))
	if err != nil {
		return nil, answer.MarkUnanswered(err)
	}
	if claim.GetUID() != s.Claim.GetUID() || claim.GetNamespace() != s.Namespace || claim.GetName() != s.Name {
		return nil, fmt.Errorf("cluster %q answered with another object than %s", s.ClusterName, s.NamespacedName)
	}
	return claim, nil
}

// rememberShown remembers an apply whose result the workload cluster dropped or changed. An identical apply is not
// repeated.
func (r *LateFields) rememberShown(s *scope.Scope, record string, spec map[string]any, hub *unstructured.Unstructured) {
	_, still := propagation.LateSpec(s.Claim, hub, s.Form)
	r.Ledger.Edit(s.Request, func(e *ledger.Entry) {
		e.Shown = ""
		if still || record != "" && !ownership.Records(s.Claim, hub) {
			e.Shown = record + propagation.HashOf(spec)
		}
	})
}

func (r *LateFields) shownInVain(s *scope.Scope, record string, spec map[string]any) bool {
	return r.Ledger.Of(s.Request).Shown == record+propagation.HashOf(spec)
}

// conflictsWithRecord reports whether an apply was refused because somebody else wrote the record, or applied empty
// annotations, to which nobody else may add by an apply.
func conflictsWithRecord(err error) bool {
	return slices.ContainsFunc(propagation.ConflictCauses(err), func(c metav1.StatusCause) bool {
		return c.Field == ".metadata.annotations" || strings.HasSuffix(c.Field, "."+fleetv1alpha1.HubObjectAnnotation)
	})
}
