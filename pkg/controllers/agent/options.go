// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Defaults of Options.
const (
	DefaultMaxConcurrentReconciles = 32
	DefaultFirstStatusPatience     = 2 * time.Second
	DefaultInFlightGrace           = 10 * time.Second
	DefaultCredentialsPoll         = 45 * time.Second
	DefaultCredentialsRetry        = 10 * time.Second
)

// Options configure the agent.
type Options struct {
	// Fleet says which clusters are enrolled, and how. Required.
	Fleet index.Fleet

	// Gate is the gate that the cluster provider controls.
	Gate *multicluster.Gate

	// Users tracks our username in each cluster, which the policy there allows. Default: the username is never in doubt.
	Users *install.PolicyUsers

	// Reporter receives the state of the claim kinds' definitions in the workload clusters.
	Reporter install.Reporter

	// ProtectedNamespaces of the hub are never the target of a claim, in addition to kube-*: the namespaces of the manager
	// and of Crossplane.
	ProtectedNamespaces []string

	// MaxConcurrentReconciles and MaxInFlightPerCluster limit concurrent reconciles.
	MaxConcurrentReconciles int
	MaxInFlightPerCluster   int

	// FirstStatusPatience is how long the condition AgentSynced of a new claim waits for the hub's first status, so that
	// both are one write.
	FirstStatusPatience time.Duration

	// InFlightGrace is how long the hub may still execute a create after its sender was killed or gave up. For as long
	// after a start, a claim without an object in the hub is not released.
	InFlightGrace time.Duration

	// WithdrawalGrace is how long a definition that is no longer offered, and has no objects, refuses new ones before it
	// is removed from a workload cluster.
	WithdrawalGrace time.Duration

	// CredentialsPoll is how long credentials from a workload cluster are used before they are read again.
	// CredentialsRetry is how long unusable ones are not retried.
	CredentialsPoll, CredentialsRetry time.Duration

	// HubBudget limits the memory for the claims in the hub; nil means no limit.
	HubBudget *limits.Budget

	// Clock defaults to the real clock.
	Clock clock.PassiveClock

	// Registerer receives the metrics; nil publishes none. QueueMetrics are those of the queues.
	Registerer   prometheus.Registerer
	QueueMetrics *multicluster.Metrics

	// SkipNameValidation allows two agents in one process. Only tests need it.
	SkipNameValidation *bool
}

func (o *Options) setDefaults() error {
	if o.Fleet == nil {
		return errors.New("the agent requires the fleet")
	}
	if o.Users == nil {
		o.Users = &install.PolicyUsers{}
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.FirstStatusPatience <= 0 {
		o.FirstStatusPatience = DefaultFirstStatusPatience
	}
	if o.InFlightGrace <= 0 {
		o.InFlightGrace = DefaultInFlightGrace
	}
	if o.WithdrawalGrace <= 0 {
		o.WithdrawalGrace = definition.DefaultWithdrawalGrace
	}
	if o.CredentialsPoll <= 0 {
		o.CredentialsPoll = DefaultCredentialsPoll
	}
	if o.CredentialsRetry <= 0 {
		o.CredentialsRetry = DefaultCredentialsRetry
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}
