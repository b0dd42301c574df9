// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/down"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/report"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
)

// requirementReconciler pushes claims to the hub, and copies their status and connection Secrets back.
type requirementReconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader

	// hubClient and hubReader use the identity of the context in the hub; see package hubaccess.
	hubClient  client.Writer
	hubReader  client.Reader
	identities *hubaccess.Clients

	clock     clock.PassiveClock
	protected []string
	metrics   *metrics.Metrics

	// inFlight tracks which creates in the hub may be in flight.
	inFlight *ledger.InFlight

	// ledger holds the state kept about each claim.
	ledger *ledger.Ledger

	// reported holds watch events of claims that are being reconciled.
	reported ledger.Reported

	// What flows down: late-initialized fields, Secrets, and user-visible reports.
	late    down.LateFields
	secrets down.Secrets
	reports report.Reporter
}

// requirementOptions are the options of requirementReconciler.
type requirementOptions struct {
	hub        *view.Hub
	workloads  *view.Clusters
	fleet      view.Fleet
	classes    client.Reader
	identities *hubaccess.Clients
	clock      clock.PassiveClock
	metrics    *metrics.Metrics

	// protected are namespaces of the hub that are never a target.
	protected []string

	// patience is how long a claim's first status waits for the hub's, and inFlightGrace how long a create in the hub may
	// be in flight after its sender gave up.
	patience, inFlightGrace time.Duration
}

func newRequirementReconciler(o requirementOptions) *requirementReconciler {
	l := &ledger.Ledger{}
	return &requirementReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes,
		hubClient: hubaccess.API{}, hubReader: hubaccess.API{}, identities: o.identities,
		clock: o.clock, protected: o.protected, metrics: o.metrics, ledger: l,
		inFlight: ledger.NewInFlight(o.clock, o.inFlightGrace),
		late:     down.LateFields{Clock: o.clock, Metrics: o.metrics, Ledger: l, Patience: o.patience},
		secrets:  down.Secrets{Hub: o.hub, HubReader: hubaccess.API{}, Metrics: o.metrics},
		reports:  report.Reporter{Clock: o.clock, Metrics: o.metrics, Ledger: l, Patience: o.patience},
	}
}
