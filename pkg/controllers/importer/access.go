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
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// access reviews the credentials' rights in the imported cluster, and lists its Nodes.
func (r *kubeconfigs) access(ctx context.Context, s *scope, k kubeconfig) (res result, err error) {
	if k.content == nil && k.waits {
		return res, nil // A kubeconfig is on its way.
	}
	if k.content == nil {
		res.set(noKubeconfigAccess())
		return res, nil
	}
	who := sha256.Sum256(k.content)
	before := r.clusters.Last(s.key(), s.imp.UID)
	now := r.clusters.Clock.Now()
	if good := before.GoodFor() - now.Sub(before.At); before.Who == who && good > 0 {
		res.set(before.Condition())
		res.requeue(good)
		return res, nil
	}
	leave, ok := r.places.Acquire(s.key(), s.imp.Namespace)
	if res.waits = !ok; res.waits {
		return res, nil
	}
	defer leave()
	answer, err := r.clusters.Ask(ctx, s.imp.Namespace, k.content, r.creds)
	if err != nil {
		return res, err
	}
	answer.UID, answer.At, answer.Who = s.imp.UID, now, who
	if answer.Created.IsZero() {
		answer.Created = before.Created
	}
	if answer.Access.Reason == fleetv1alpha1.ReasonAccessUnknown {
		answer.Failures = before.Failures + 1
		if !answer.NodesKnown {
			// A cluster that cannot be reached keeps its last known Nodes.
			answer.Nodes, answer.NodesKnown = before.Nodes, before.NodesKnown
		}
	}
	answer = r.clusters.Remember(s.key(), answer)
	res.set(answer.Condition())
	res.requeue(answer.GoodFor())
	if answer.Unauthenticated && k.account != nil {
		// The ServiceAccount of the token was deleted, and perhaps recreated: the next pass requests another one. A token
		// counts for a while in any case, so that a cluster cannot have them requested all the time.
		r.accounts.Drop(s.key(), workload.Resync)
	}
	if answer.NodesKnown != before.NodesKnown {
		res.requeue(condition.Soon) // The Nodes may show pools.
	}
	return res, nil
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
