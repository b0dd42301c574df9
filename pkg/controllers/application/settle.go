// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// While a kind is being read for the first time, its components stay as the status has them, and everything else is
// shown as it is. Without that, every restart would write that nothing is known, and then once more what was there
// before.
const (
	// firstHealthTimeout is how long a status waits for a component of which it says nothing yet.
	firstHealthTimeout = 5 * time.Second
)

// settle has what is not known yet shown as the status has it. It returns true if the status has to wait for it
// altogether.
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
