// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/fence"
)

// fenced returns the lock with which the leader is elected, and a configuration for the hub with which nothing is written while the
// lock is not held. The lock itself is written with the configuration as it was.
func fenced(cfg *rest.Config, o Options) (resourcelock.Interface, *rest.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot name this replica: %w", err)
	}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, cfg, o.LeaderElection.RenewDeadline.Duration)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the lock of the leader election: %w", err)
	}
	f := fence.New(o.LeaderElection.LeaseDuration.Duration, clock.RealClock{})
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(f.Wrap)
	return f.Lock(lease), cfg, nil
}
