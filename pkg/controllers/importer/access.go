// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/sha256"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// access reviews the credentials' rights in the imported cluster, and lists its Nodes.
func (r *kubeconfigs) access(ctx context.Context, p *scope.Scope) error {
	if p.KubeconfigNow == nil && p.Waits {
		return nil // A kubeconfig is on its way.
	}
	if p.KubeconfigNow == nil {
		p.Set(noKubeconfigAccess())
		return nil
	}
	who := sha256.Sum256(p.KubeconfigNow)
	before := r.clusters.Last(p.Key(), p.Import.UID)
	now := r.clusters.Clock.Now()
	if good := before.GoodFor() - now.Sub(before.At); before.Who == who && good > 0 {
		p.Set(before.Condition())
		p.RequeueSoon(good)
		return nil
	}
	leave, ok := r.enter(p)
	if !ok {
		return nil
	}
	defer leave()
	answer, err := r.clusters.Ask(ctx, p.Import.Namespace, p.KubeconfigNow, r.creds)
	if err != nil {
		return err
	}
	answer.UID, answer.At, answer.Who = p.Import.UID, now, who
	if answer.Access.Reason == fleetv1alpha1.ReasonAccessUnknown {
		answer.Failures = before.Failures + 1
		if !answer.NodesKnown {
			// A cluster that cannot be reached keeps its last known Nodes.
			answer.Nodes, answer.NodesKnown = before.Nodes, before.NodesKnown
		}
	}
	answer = r.clusters.Remember(p.Key(), answer)
	p.Set(answer.Condition())
	p.RequeueSoon(answer.GoodFor())
	if answer.Unauthenticated {
		r.refusedToken(p)
	}
	if answer.NodesKnown != before.NodesKnown {
		p.RequeueSoon(condition.Soon) // The Nodes may show pools.
	}
	return nil
}

func noKubeconfigAccess() metav1.Condition {
	return metav1.Condition{
		Type: fleetv1alpha1.ConditionWorkloadAccess, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonAccessNone,
		Message: "There is no kubeconfig",
	}
}

// newPlaces returns half as many places as workers, so that hanging queries never block imports that query nothing.
func newPlaces(workers int, wake func(types.NamespacedName)) *limits.Slots[types.NamespacedName] {
	return limits.NewSlots(workers/2, 0, wake)
}

// enter requests a place for the import of a pass.
func (r *kubeconfigs) enter(p *scope.Scope) (leave func(), ok bool) {
	if leave, ok = r.places.Acquire(p.Key(), p.Import.Namespace); !ok {
		p.Waits = true
	}
	return leave, ok
}
