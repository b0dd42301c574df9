// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reconciler maintains the read-only copies of the hub's definitions and compositions in the workload clusters.
type reconciler struct {
	hub            *hub
	workloads      *workloads
	fleet          Fleet
	classes        client.Reader
	reports        *reports
	requestTimeout time.Duration
	clock          clock.PassiveClock

	// enrolments holds the last known enrolment of each cluster.
	enrolments install.Latest[mcr.ClusterName, enrolment]
}

type enrolment struct {
	class, credentials string
	state              connection.State
}
