// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// WithConflict returns a claim whose annotation names the holder of its name, or without one for an empty holder; nil
// if nothing changes. The annotation repeats the condition, for definitions that drop unknown conditions.
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

// annotate writes a claim's conflict annotation, unless the claim is nil. If the cluster refuses, that is only logged:
// the condition says everything that the annotation would.
func (r *Reporter) annotate(ctx context.Context, s *Scope, claim *unstructured.Unstructured) error {
	if claim == nil {
		return nil
	}
	err := hubaccess.WorkloadError(
		PatchClaim(ctx, s, claim, WriteAnnotation, r.Metrics),
		"annotate this claim",
		fleetv1alpha1.ReasonWorkloadRejected,
	)
	if p, ok := errors.AsType[*condition.Error](err); ok {
		log.FromContext(ctx).Info("Cannot annotate a claim", "reason", p.Reason, "message", p.Message)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot annotate %s: %w", s.ObjectRequest, err)
	}
	return nil
}
