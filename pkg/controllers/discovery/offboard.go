// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

const (
	// offboardTimeout bounds the offboarding of a cluster.
	offboardTimeout = 30 * time.Second

	// offboardInterval is how often progress is checked. A check costs no request unless there is something to do.
	offboardInterval = 200 * time.Millisecond
)

// offboard removes Masthead's objects from a cluster that is offboarded: nothing would update the copies any more, and
// the policy would block the cluster's users. It is called while the cluster is still connected and after its last pass
// has ended.
func (r *reconciler) offboard(ctx context.Context, name mcr.ClusterName) error {
	w, engaged := r.workloads.Get(name)
	if !engaged {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offboardTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, offboardInterval, true, func(ctx context.Context) (bool, error) {
		cluster, _ := r.fleet.Lookup(name)
		p := r.newPass(w, cluster, offer{mode: fleetv1alpha1.DiscoveryModeNone})
		_, err := p.run(ctx)
		return err == nil && p.unmanaged(), err
	})
	if err != nil {
		return fmt.Errorf("cannot remove Masthead's objects from cluster %q: %w", name, multicluster.AsForeign(err))
	}
	return nil
}

// unmanaged reports whether the cluster has nothing of Masthead's left to remove.
func (p *pass) unmanaged() bool {
	for _, k := range mirroredKinds() {
		if !p.w.isUnmanaged(crdKind(k.crd(), true)) && !p.kept.Has(k.crd()) {
			return false
		}
	}
	return p.w.isUnmanaged(policyKind) && p.w.isUnmanaged(bindingKind)
}
