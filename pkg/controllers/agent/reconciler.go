// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
)

// requirementReconciler pushes claims to the hub, and copies their status and connection Secrets back.
type requirementReconciler struct {
	hub       *index.Hub
	workloads *index.Clusters
	fleet     index.Fleet
	classes   client.Reader

	// hubClient and hubReader use the identity of the context in the hub; see package hubaccess.
	hubClient  client.Writer
	hubReader  client.Reader
	identities *hubaccess.Clients

	clock     clock.PassiveClock
	protected []string
	metrics   *downstream.Metrics

	// inFlight tracks which creates in the hub may be in flight.
	inFlight *index.InFlight

	// ledger holds the state kept about each claim.
	ledger *index.Ledger

	// reported holds watch events of claims that are being reconciled.
	reported index.Reported

	// What flows down: Secrets, and what claims show.
	secrets downstream.Secrets
	reports downstream.Reporter
}

// requirementOptions are the options of requirementReconciler.
type requirementOptions struct {
	hub        *index.Hub
	workloads  *index.Clusters
	fleet      index.Fleet
	classes    client.Reader
	identities *hubaccess.Clients
	clock      clock.PassiveClock
	metrics    *downstream.Metrics

	// protected are namespaces of the hub that are never a target.
	protected []string

	// patience is how long a claim's first status waits for the hub's, and inFlightGrace how long a create in the hub may
	// be in flight after its sender gave up.
	patience, inFlightGrace time.Duration
}

func newRequirementReconciler(o requirementOptions) *requirementReconciler {
	l := &index.Ledger{}
	return &requirementReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes,
		hubClient: hubaccess.API{}, hubReader: hubaccess.API{}, identities: o.identities,
		clock: o.clock, protected: o.protected, metrics: o.metrics, ledger: l,
		inFlight: index.NewInFlight(o.clock, o.inFlightGrace),
		secrets:  downstream.Secrets{Hub: o.hub, HubReader: hubaccess.API{}, Metrics: o.metrics},
		reports:  downstream.Reporter{Clock: o.clock, Metrics: o.metrics, Ledger: l, Patience: o.patience},
	}
}
