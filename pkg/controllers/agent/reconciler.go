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

	clock   clock.PassiveClock
	metrics *downstream.Metrics

	// protected are namespaces of the hub that are never a target.
	protected []string

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

// complete sets what follows from the other fields. patience is how long a claim's first status waits for the hub's,
// and inFlightGrace how long a create in the hub may be in flight after its sender gave up.
func (r *requirementReconciler) complete(patience, inFlightGrace time.Duration) *requirementReconciler {
	r.hubClient, r.hubReader = hubaccess.API{}, hubaccess.API{}
	r.ledger, r.inFlight = &index.Ledger{}, index.NewInFlight(r.clock, inFlightGrace)
	r.secrets = downstream.Secrets{Hub: r.hub, HubReader: r.hubReader, Metrics: r.metrics}
	r.reports = downstream.Reporter{Clock: r.clock, Metrics: r.metrics, Ledger: r.ledger, Patience: patience}
	return r
}
