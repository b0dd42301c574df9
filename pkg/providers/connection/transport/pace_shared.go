// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"time"
)

// busyFor is how long a cluster still counts as busy after it last was.
const busyFor = 10 * time.Second

// load decides whether a cluster is busy: whether it has sent half of a burst above BusyPerSecond. This is measured
// separately from the limits, because by these a cluster that sends exactly its limit, or rests until its burst is
// restored, would never be busy. A cluster with unread data does not rest, however slowly it is read.
type load struct {
	perSecond, capacity float64

	level float64
	// at is when the cluster last sent, or last had data waiting to be read.
	at time.Time
	// waited reports whether data waited.
	waited bool
	busy   bool
}

// woken is how long a waiting reader may take to continue: this time does not count as rest.
const woken = time.Second

func newLoad(p RateLimit) load {
	capacity := float64(p.Burst) / 2
	return load{perSecond: float64(p.BusyPerSecond), capacity: capacity, level: capacity}
}

// add counts n events, and reports whether the cluster is busy.
func (l *load) add(n int64, now time.Time) bool {
	if !l.at.IsZero() {
		rested := now.Sub(l.at)
		if l.waited {
			rested -= woken
		}
		l.level = min(l.capacity, l.level+l.perSecond*max(0, rested).Seconds())
	}
	if l.level >= l.capacity/2 {
		l.busy = false
	}
	l.level -= float64(n)
	if now.After(l.at) {
		l.at, l.waited = now, false
	}
	if l.level <= 0 {
		// No debt: only future events count.
		l.level, l.busy = 0, true
	}
	return l.busy
}

// wait records that data of the cluster waits until then.
func (l *load) wait(until time.Time) {
	if until.After(l.at) {
		l.at, l.waited = until, true
	}
}

// Shared divides the reading pace among busy clusters. A single busy cluster gets its full pace, several get less each:
// busy clusters do not delay those that send little.
//
// One limiter for all was rejected: a cluster with many watches would use most of it, and the others would queue behind
// it. So was a pace that falls only when the processor is short: until it has fallen, other clusters wait behind data
// already read.
type Shared struct {
	// perSecond is for all busy clusters together, and atLeast the minimum for each.
	perSecond, atLeast float64

	mu   sync.Mutex
	busy map[*RateLimiter]time.Time
	// swept is when clusters that are no longer busy were last removed.
	swept time.Time
}

// NewShared returns the shared part of a pace.
func NewShared(p RateLimit) *Shared {
	return &Shared{perSecond: float64(p.SharedPerSecond), atLeast: float64(p.LeastPerSecond), busy: map[*RateLimiter]time.Time{}}
}

// share records whether a cluster is busy, and returns how many of its events may be read per second.
func (s *Shared) share(a *RateLimiter, isBusy bool, alone float64, now time.Time) float64 {
	if s == nil {
		return alone
	}
	busy := s.note(a, isBusy, now)
	if !isBusy || busy == 1 {
		return alone
	}
	return min(alone, max(s.atLeast, s.perSecond/float64(busy)))
}

// note records whether a cluster is busy, and returns the number of busy clusters.
func (s *Shared) note(a *RateLimiter, isBusy bool, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= time.Second {
		s.swept = now
		for other, at := range s.busy {
			if now.Sub(at) >= busyFor {
				delete(s.busy, other)
			}
		}
	}
	if isBusy {
		s.busy[a] = now
	} else {
		delete(s.busy, a)
	}
	return len(s.busy)
}
