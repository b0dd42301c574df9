// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// adopt makes an object of the hub the claim's if it is not. The write requires the object to be unchanged, so that a
// consent withdrawn meanwhile does not count. The claim's content is applied afterwards.
func (r *requirementReconciler) adopt(
	ctx context.Context, s *downstream.Scope, key ownership.Place, hub *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if hub == nil || s.Owns(hub) {
		return hub, nil
	}
	out := ownership.Adopted(hub, s.Marks(ctx, nil))
	patch := client.MergeFromWithOptions(hub, client.MergeFromWithOptimisticLock{})
	if err := r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager)); err != nil {
		err = hubaccess.HubError(err, "patch", s.Kind.GroupResource().String(), key.Namespace)
		return nil, fmt.Errorf("cannot adopt %s %q in the hub: %w", s.Kind, key.NamespacedName, err)
	}
	r.observe(s, key, out)
	r.metrics.Wrote(s.ClusterName, downstream.WriteClaim)
	s.Workload.Recorder.Eventf(s.Claim, nil, corev1.EventTypeNormal, fleetv1alpha1.ReasonAdopted, "Synchronise",
		"The %s %q in the namespace %q of the hub belongs to this claim from now on", s.Kind.Kind, s.Name, key.Namespace)
	return out, nil
}
