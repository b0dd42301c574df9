// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"time"
)

// busyFor is for how long a cluster counts as busy after it last was.
const busyFor = 10 * time.Second

// load says whether a cluster is busy: whether it has sent half of a burst on top of what each cluster may send
// whatever the others do. That is measured apart from the limits, by which a cluster that sends just as much as it may,
// or that rests until its burst has come back, would never be busy. A cluster of which something waits to be read does
// not rest, however slowly it is read.
type load struct {
	perSecond, capacity float64

	level float64
	// at is until when the cluster sent, or something of it waited to be read.
	at time.Time
	// waited is whether something waited.
	waited bool
	busy   bool
}

// woken is for how long whoever waited may take to go on: the cluster does not rest meanwhile.
const woken = time.Second

func newLoad(p Pace) load {
	capacity := float64(p.Burst) / 2
	return load{perSecond: float64(p.BusyPerSecond), capacity: capacity, level: capacity}
}

// add counts n events, and says whether the cluster is busy.
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
		// There is no debt: it is about what comes, not about what came.
		l.level, l.busy = 0, true
	}
	return l.busy
}

// wait notes that something of the cluster waits until then.
func (l *load) wait(until time.Time) {
	if until.After(l.at) {
		l.at, l.waited = until, true
	}
}

// Shared shares out what is read of the clusters that send more than their burst at the same time. One of them has what
// each may have for itself, several have less each, and all are read more slowly while the processor is short: clusters
// that send little are not late because of those that send much.
//
// One limiter for all of them was rejected: whoever has many watches would have most of it, and the others would wait
// behind. So was a pace that falls only when the processor is short: until it has fallen, the others wait behind what
// was read before.
type Shared struct {
	// perSecond is for all busy clusters together, and atLeast what each has however many there are.
	perSecond, atLeast float64
	pressure           *Pressure

	mu   sync.Mutex
	busy map[*Allowance]time.Time
	// swept is when clusters that were not busy any more were last removed.
	swept time.Time
}

// NewShared returns what clusters share that are read at a pace. pressure is nil if the processor is never short.
func NewShared(p Pace, pressure *Pressure) *Shared {
	return &Shared{
		perSecond: float64(p.SharedPerSecond), atLeast: float64(p.LeastPerSecond), pressure: pressure, busy: map[*Allowance]time.Time{},
	}
}

// share notes whether a cluster is busy, and returns how many events of it may be read in a second.
func (s *Shared) share(a *Allowance, isBusy bool, alone float64, now time.Time) float64 {
	if s == nil {
		return alone
	}
	busy := s.note(a, isBusy, now)
	if !isBusy {
		return alone
	}
	most := alone
	if busy > 1 {
		most = min(alone, s.perSecond/float64(busy))
	}
	return min(alone, max(s.atLeast, most*s.pressure.want(now)))
}

// note notes whether a cluster is busy, and returns how many are.
func (s *Shared) note(a *Allowance, isBusy bool, now time.Time) int {
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
