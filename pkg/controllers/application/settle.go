// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
)

// While a kind is being read for the first time, its components stay as the status has them, and everything else is
// shown as it is. Without that, every restart would write that nothing is known, and then once more what was there
// before.
const (
	// patience is how long a status waits for a component of which it says nothing yet.
	patience = 5 * time.Second

	// statusPatience is how long a status keeps what it says of a component that cannot be seen yet. When many clusters
	// are read at once, kinds wait for their turn.
	statusPatience = 2 * time.Minute
)

// settle has what is not known yet shown as the status has it. It returns true if the status has to wait for it
// altogether.
func (p *pass) settle(o *appstatus.Observation) (wait bool) {
	waiting := o.HealthCheck.Syncing || slices.ContainsFunc(o.Components, func(v appstatus.ComponentView) bool { return v.Syncing })
	since := p.w.settling(p.t, waiting)
	if !waiting || since >= statusPatience {
		return false
	}
	if o.ListsPart() {
		p.lookAgain(statusPatience - since)
		return true
	}
	if !o.Hold() && since < patience {
		p.lookAgain(patience - since)
		return true
	}
	p.lookAgain(statusPatience - since)
	return false
}

// settling returns for how long an Application has been waiting for what is about to be known.
func (w *workload) settling(t *tracked, waiting bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	switch {
	case !waiting:
		t.settlingSince = time.Time{}
		return 0
	case t.settlingSince.IsZero():
		t.settlingSince = now
	}
	since := now.Sub(t.settlingSince)
	if since < statusPatience {
		// What it waits for is acted upon at once.
		t.started = time.Time{}
	}
	return since
}
