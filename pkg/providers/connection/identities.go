// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// identities decides which enrolment holds a cluster or an identifier that several request.
type identities struct {
	arbiter *arbiter
	sources map[string]Source
	records *records
}

// claim requests the cluster from the arbiter, and returns why it is refused. A holder loaded from a pin is first
// looked up in the hub: its object may be gone.
func (i *identities) claim(ctx context.Context, r *record, uid string) *condition.Error {
	identifier := r.enrolment.Identifier
	if identifier == "" {
		identifier = uid
	}
	for {
		decision := i.arbiter.claim(r.key, r.enrolment.Object.UID, uid, identifier)
		i.records.retry(decision.Freed)
		switch decision.Verdict {
		case verdictGranted:
			r.identifier = identifier
			return nil
		case verdictHub:
			return condition.NewError(fleetv1alpha1.ReasonHubItself, "The kubeconfig leads to the hub itself, which cannot be a workload cluster")
		case verdictIdentityChanged:
			return condition.NewError(fleetv1alpha1.ReasonClusterIdentityChanged, fmt.Sprintf(
				"The kubeconfig leads to a cluster with the UID %q, and led to another one before; un-enrol and enrol it again if that is intended", uid))
		case verdictDuplicate:
		}
		if decision.Pinned && !i.stillEnrolled(ctx, decision.Holder, r.key) {
			continue
		}
		if decision.SameCluster {
			return condition.NewError(fleetv1alpha1.ReasonDuplicateCluster, fmt.Sprintf("The same cluster is already enrolled as %q", decision.Holder))
		}
		return condition.NewError(fleetv1alpha1.ReasonDuplicateCluster, fmt.Sprintf("The cluster identifier %q belongs to %q", identifier, decision.Holder))
	}
}

// stillEnrolled looks up the holder of a pinned claim, and confirms or releases the claim. If the hub cannot be read,
// the holder keeps it. The caller claims again; other refused enrolments are retried.
func (i *identities) stillEnrolled(ctx context.Context, holder, asks Key) bool {
	e, err := i.sources[holder.Source].Describe(ctx, types.NamespacedName{Namespace: holder.Namespace, Name: holder.Name})
	if err != nil && !errors.Is(err, ErrNotEnrolled) {
		return true
	}
	c, ok := i.arbiter.held(holder)
	if ok && err == nil && (c.ObjectUID == "" || c.ObjectUID == e.Object.UID) {
		i.arbiter.confirm(holder)
		return true
	}
	i.records.retry(slices.DeleteFunc(i.arbiter.release(holder), func(k Key) bool { return k == asks }))
	return false
}

// release gives up an enrolment's cluster, and retries enrolments that were refused because of it.
func (i *identities) release(k Key) {
	i.records.retry(i.arbiter.release(k))
}
