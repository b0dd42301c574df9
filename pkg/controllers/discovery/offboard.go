// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

const (
	// offboardTimeout is how long a cluster that leaves is waited for.
	offboardTimeout = 30 * time.Second

	// offboardInterval is how often it is looked at meanwhile. A look costs no request unless there is something to do.
	offboardInterval = 200 * time.Millisecond
)

// offboard takes back what was put into a cluster that leaves for good: nobody would keep the copies true, and the
// policy would be in the way of the cluster's users. It is called while the cluster is still connected and no pass of
// it runs any more.
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
		p.watch()
		err := errors.Join(p.protect(ctx), p.mirrorAll(ctx))
		p.watch()
		return err == nil && p.unmanaged(), err
	})
	if err != nil {
		return fmt.Errorf("cannot take back what cluster %q was shown: %w", name, multicluster.AsForeign(err))
	}
	return nil
}

// unmanaged is whether the cluster has nothing of Masthead's any more that could be taken back.
func (p *pass) unmanaged() bool {
	for _, k := range mirroredKinds() {
		if !p.w.isUnmanaged(crdKind(k.crd(), true)) && !p.kept.Has(k.crd()) {
			return false
		}
	}
	return p.w.isUnmanaged(policyKind) && p.w.isUnmanaged(bindingKind)
}
