// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// During the first list of a kind, its components keep their previous status; everything else is shown as observed.
// Otherwise every restart would first write Unknown, and then the previous status again.
const (
	// firstHealthTimeout is how long a status waits for a component that it does not list yet.
	firstHealthTimeout = 5 * time.Second
)

// settle shows components that are not observed yet as in the previous status. It returns true if the whole status has
// to wait for them.
func (p *pass) settle(o *appstatus.Observation) (wait bool) {
	waiting := o.HealthCheck.Syncing || slices.ContainsFunc(o.Components, func(v appstatus.ComponentView) bool { return v.Syncing })
	since := p.w.Settling(p.t, waiting)
	if !waiting || since >= workload.StatusPatience {
		return false
	}
	if o.ListsPart() {
		p.lookAgain(workload.StatusPatience - since)
		return true
	}
	if !o.Hold() && since < firstHealthTimeout {
		p.lookAgain(firstHealthTimeout - since)
		return true
	}
	p.lookAgain(workload.StatusPatience - since)
	return false
}
