// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// WithConflict returns a claim that names the holder of its name in an annotation, or none for an empty holder; nil if
// the claim is like that already. The annotation says the same as the condition, for definitions that drop conditions
// which they do not know.
func WithConflict(claim *unstructured.Unstructured, holder string) *unstructured.Unstructured {
	holder = multicluster.BoundedText(holder)
	if claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation] == holder {
		return nil
	}
	out := claim.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.ConflictAnnotation] = holder
	if holder == "" {
		delete(annotations, fleetv1alpha1.ConflictAnnotation)
	}
	out.SetAnnotations(annotations)
	return out
}

// noteConflict brings the annotation of a claim in line with what was found. A cluster that does not let us is told so
// in the log only: the condition says everything that the annotation would. Of a paused claim nothing was found.
func (r *Reporter) noteConflict(ctx context.Context, s *scope.Scope, holder string) error {
	claim := WithConflict(s.Claim, holder)
	if claim == nil || s.IsPaused() {
		return nil
	}
	err := scope.PatchClaim(ctx, s, claim, metrics.WriteAnnotation, r.Metrics)
	if p := reason.OfWorkload(err, "annotate this claim", reason.ReasonWorkloadRejected); p != nil {
		log.FromContext(ctx).Info("Cannot annotate a claim", "reason", p.Reason, "message", p.Message)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot annotate %s: %w", s.Request, err)
	}
	return nil
}
