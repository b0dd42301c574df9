// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Initialise applies late-initialized fields to the claim, unless they are nil.
func (r *Reporter) Initialise(ctx context.Context, s *Scope, hub *unstructured.Unstructured, spec map[string]any) error {
	if err := r.inheritLate(ctx, s); err != nil || spec == nil {
		return err
	}
	var again error
	manager := s.Workload.Owner().FieldManager(fleetv1alpha1.LateInitFieldManager)
	err := r.Apply(ctx, s, manager, spec)
	if fields := propagation.ConflictingFields(err, s.Form.LateFields(spec)); len(fields) > 0 {
		// The user set the same value as we did, so that it looked like ours; it is theirs and has to be pushed. The watch
		// does not requeue the claim for our own write.
		spec, _ = propagation.LateSpec(s.Latest(), hub, s.Form, fields...)
		err = r.Apply(ctx, s, manager, spec)
		again = condition.PendingError{After: lookAgain}
	}
	if err != nil {
		return refused(s, err)
	}
	r.Metrics.Wrote(s.ClusterName, WriteLateFields)
	_, still := propagation.LateSpec(s.Latest(), hub, s.Form)
	r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		e.Shown = ""
		if still { // The workload cluster dropped or changed them. An identical apply is not repeated.
			e.Shown = objects.Digest(spec)
		}
	})
	return again
}

// Record writes the record of the claim's object in the hub, unless it is empty.
func (r *Reporter) Record(ctx context.Context, s *Scope, hub *unstructured.Unstructured, record string) error {
	if record == "" {
		return nil
	}
	claim := s.Latest().DeepCopy()
	ownership.SetRecord(claim, record)
	if err := PatchClaim(ctx, s, claim, WriteAnnotation, r.Metrics); err != nil {
		return refused(s, err)
	}
	r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		e.Recorded = ""
		if !ownership.Records(s.Latest(), hub) { // As above.
			e.Recorded = record
		}
	})
	return nil
}

// refused returns what a failed write means.
func refused(s *Scope, err error) error {
	return fmt.Errorf("cannot write the late-initialized fields of %s: %w", s.ObjectRequest,
		hubaccess.WorkloadError(err, "write the late-initialized fields of this claim", fleetv1alpha1.ReasonWorkloadRejected))
}

// inheritLate moves fields of our former field managers to this hub's: it applies the same, then makes the former ones
// give them up.
func (r *Reporter) inheritLate(ctx context.Context, s *Scope) error {
	former := propagation.FormerManagers(s.Claim, s.Workload.Owner())
	if len(former) == 0 {
		return nil
	}
	var spec map[string]any
	if owned := propagation.LateOwned(s.Claim); len(owned) > 0 {
		have, _ := s.Claim.Object["spec"].(map[string]any)
		spec, _ = propagation.OwnedPart(owned, have).(map[string]any)
	}
	err := r.Apply(ctx, s, s.Workload.Owner().FieldManager(fleetv1alpha1.LateInitFieldManager), spec)
	for _, manager := range former {
		if err == nil {
			err = r.Apply(ctx, s, manager, nil)
		}
	}
	if err != nil {
		// A concurrent change by a user is an event.
		return fmt.Errorf("cannot take over the fields of former field managers in %s: %w", s.ObjectRequest, err)
	}
	r.Metrics.Wrote(s.ClusterName, WriteLateFields)
	return nil
}

// lookAgain is when to requeue a claim that turned out to contain more user intent than was pushed.
const lookAgain = time.Millisecond

// Apply applies late-initialized fields in the very claim that was read. It does not recreate a deleted claim.
func (r *Reporter) Apply(ctx context.Context, s *Scope, manager string, spec map[string]any) error {
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetGroupVersionKind(s.Kind.GroupVersionKind)
	claim.SetNamespace(s.Namespace)
	claim.SetName(s.Name)
	claim.SetUID(s.Claim.GetUID())
	if len(spec) > 0 {
		claim.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	err := s.Workload.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(claim), client.FieldOwner(manager))
	if err != nil {
		return hubaccess.MarkUnanswered(err)
	}
	// The apply is unconditional, and its answer can contain changes by others that were never read. So it does not count
	// as written by this reconcile, and its event requeues the claim.
	return s.observe(claim)
}
