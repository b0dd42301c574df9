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

// requirementReconciler carries claims to the hub, and their status and connection Secrets back.
type requirementReconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader

	// hubClient and hubReader are the hub with the rights of the identity of the context; see package hubaccess.
	hubClient  client.Writer
	hubReader  client.Reader
	identities *hubaccess.Clients

	clock     clock.PassiveClock
	protected []string
	metrics   *metrics.Metrics

	// bursts knows which clusters create many claims right now.
	bursts *ledger.Bursts

	// inFlight knows which creations in the hub may be under way.
	inFlight *ledger.InFlight

	// ledger has what is kept about each claim.
	ledger *ledger.Ledger

	// reported has what watches report of claims that are being reconciled.
	reported ledger.Reported

	// What flows down: late fields, Secrets, and what users are told.
	late    down.LateFields
	secrets down.Secrets
	reports report.Reporter
}

// requirementOptions are what the reconciler needs.
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

	// patience is how long the first status of a claim waits for the hub's, and inFlightGrace how long a creation in the
	// hub may be under way after its sender has given it up.
	patience, inFlightGrace time.Duration
}

func newRequirementReconciler(o requirementOptions) *requirementReconciler {
	l, bursts := &ledger.Ledger{}, ledger.NewBursts(o.clock)
	return &requirementReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes,
		hubClient: hubaccess.API{}, hubReader: hubaccess.API{}, identities: o.identities,
		clock: o.clock, protected: o.protected, metrics: o.metrics, ledger: l,
		bursts: bursts, inFlight: ledger.NewInFlight(o.clock, o.inFlightGrace),
		late:    down.LateFields{Clock: o.clock, Metrics: o.metrics, Ledger: l, Patience: o.patience},
		secrets: down.Secrets{Hub: o.hub, HubReader: hubaccess.API{}, Metrics: o.metrics},
		reports: report.Reporter{Clock: o.clock, Metrics: o.metrics, Ledger: l, Bursts: bursts, Patience: o.patience},
	}
}
