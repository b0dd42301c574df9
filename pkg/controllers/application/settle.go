// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// During the first list of a kind, its components keep their previous status; everything else is shown as observed.
// Otherwise every restart would first write Unknown, and then the previous status again.
const (
	// firstHealthTimeout is how long a status waits for a component that it does not list yet.
	firstHealthTimeout = 5 * time.Second
)

// settle shows components that are not observed yet as in the previous status. It returns false if the whole status has
// to wait for them, and when to look again.
func (s *scope) settle(o *appstatus.Observation) (write bool, err error) {
	waiting := o.HealthCheck.Syncing || slices.ContainsFunc(o.Components, func(v appstatus.ComponentView) bool { return v.Syncing })
	since := s.w.Settling(s.tracked, waiting)
	if !waiting || since >= workload.StatusPatience {
		return true, nil
	}
	end := condition.PendingError{After: workload.StatusPatience - since}
	if o.ListsPart() {
		return false, end
	}
	if !o.Hold() && since < firstHealthTimeout {
		return false, condition.PendingError{After: firstHealthTimeout - since}
	}
	return true, end
}
