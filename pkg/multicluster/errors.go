// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// ErrClusterNotConnected means that a cluster is enrolled, but cannot be written to now. The client of a degraded
// cluster returns it (wrapped with %w) for every write. A Controller requeues such a request quietly: the request is
// held in the queue while the cluster's gate is closed, and purged if the cluster is disengaged.
var ErrClusterNotConnected = errors.New("cluster is not connected")

// errNotEngaged is returned by WaitForSync for a cluster, or an instance of it, that the controller does not watch.
var errNotEngaged = errors.New("cluster is not engaged")

// hubDisplayName is the name of the hub in logs and metrics; its real name is the empty string. An empty label value is
// the same as no label in Prometheus, and an empty log value reads as a bug. The names of workload clusters contain
// slashes, so that none can be mistaken for it.
const hubDisplayName = "hub"

func displayName(name mcr.ClusterName) string {
	if name == hub {
		return hubDisplayName
	}
	return name.String()
}
