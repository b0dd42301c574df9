// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/fence"
)

// leaseName is the name of the lease; config/rbac names it too.
const leaseName = "masthead-leader"

// leadership is how this process handles leader election: the lock by which the leader is elected, and the fence that
// blocks writes while the lock is not held. The zero value is for a process that runs alone.
type leadership struct {
	lock  resourcelock.Interface
	fence *fence.Fence
}

// newLeadership makes the lock of the lease in the hub. It is written with the configuration as it is.
func newLeadership(hub *rest.Config, o Options) (leadership, error) {
	if !o.LeaderElection.Enabled {
		return leadership{}, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return leadership{}, fmt.Errorf("cannot name this replica: %w", err)
	}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, hub, o.LeaderElection.RenewDeadline.Duration)
	if err != nil {
		return leadership{}, fmt.Errorf("cannot create the lock of the leader election: %w", err)
	}
	f := fence.New(o.LeaderElection.LeaseDuration.Duration, clock.RealClock{})
	return leadership{lock: f.Lock(lease), fence: f}, nil
}

// fenced returns a configuration that blocks writes while this process does not lead.
func (l leadership) fenced(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(l.wrapper())
	return cfg
}

// wrapper wraps the requests to the hub and to workload clusters; nil for a process that runs alone.
func (l leadership) wrapper() transport.WrapperFunc {
	if l.fence == nil {
		return nil
	}
	return l.fence.Wrap
}
