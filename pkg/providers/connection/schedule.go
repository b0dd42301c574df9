// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"time"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
)

// panicWeight is how many failures to connect a panic counts as. Its cause is likely still there, and each attempt
// lists everything in the cluster again.
const panicWeight = 3

// schedule sets when an enrolment is due next.
type schedule struct{ o *Options }

// set sets the time for an action.
func (s schedule) set(r *record, a lifecycle.Action) {
	now := s.o.Clock.Now()
	switch {
	case a == lifecycle.ActionProbeNow:
		r.probeAt = now
	case a == lifecycle.ActionScheduleProbe && r.probeFailures == 1:
		r.probeAt = now.Add(jitter(min(secondProbe, s.o.ProbeInterval), s.o.Random()))
	case a == lifecycle.ActionScheduleProbe && r.probedAt.IsZero():
		// The first probe: spread clusters that were connected together.
		r.probeAt = now.Add(time.Duration(float64(s.o.ProbeInterval) * s.o.Random()))
	case a == lifecycle.ActionScheduleProbe:
		r.probeAt = now.Add(jitter(s.o.ProbeInterval, s.o.Random()))
	case a == lifecycle.ActionScheduleRetry && r.reason == fleetv1alpha1.ReasonOtherHub:
		// The other hub does not notify us when it releases the cluster.
		r.attempts++
		r.retryAt = now.Add(jitter(s.o.HubInterval, s.o.Random()))
	case a == lifecycle.ActionScheduleRetry:
		r.attempts++
		if r.reason == fleetv1alpha1.ReasonPanicked {
			r.attempts += panicWeight - 1
		}
		r.retryAt = now.Add(backoff(r.attempts, s.o.BackoffBase, s.o.BackoffMax, s.o.Random()))
	case a == lifecycle.ActionResetRetry:
		r.attempts, r.retryAt, r.settleAt = 0, time.Time{}, time.Time{}
	case a == lifecycle.ActionScheduleSettle:
		r.settleAt = now.Add(s.o.SettlePeriod)
	}
}

// minRetry keeps full jitter from meaning "at once".
const minRetry = 50 * time.Millisecond

// backoff returns how long to wait after that many failures in a row: full jitter over an exponentially growing
// interval. Full jitter, rather than a jitter of some per cent, spreads the attempts of clusters that all failed at the
// same moment, for example because the hub's network did.
func backoff(failures int, base, most time.Duration, random float64) time.Duration {
	interval := base
	for i := 1; i < failures && interval < most; i++ {
		interval *= 2
	}
	interval = min(interval, most)
	return max(minRetry, time.Duration(float64(interval)*random))
}

// jitter spreads a period over 90 to 110 per cent, so that what started together drifts apart.
func jitter(d time.Duration, random float64) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*random))
}
