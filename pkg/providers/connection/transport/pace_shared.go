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
// or that rests until its burst has come back, would never be busy.
type load struct {
	perSecond, capacity float64

	level float64
	at    time.Time
	busy  bool
}

func newLoad(p Pace) load {
	capacity := float64(p.Burst) / 2
	return load{perSecond: float64(p.LeastPerSecond), capacity: capacity, level: capacity}
}

// add counts n events, and says whether the cluster is busy.
func (l *load) add(n int64, now time.Time) bool {
	if !l.at.IsZero() {
		l.level = min(l.capacity, l.level+l.perSecond*now.Sub(l.at).Seconds())
	}
	if l.level >= l.capacity/2 {
		l.busy = false
	}
	l.at, l.level = now, l.level-float64(n)
	if l.level <= 0 {
		// There is no debt: it is about what comes, not about what came.
		l.level, l.busy = 0, true
	}
	return l.busy
}

// Shared shares out what is read of the clusters that send more than their burst at the same time. A few of them
// have what each may have for itself; of many, each is read so slowly that all of them together take a bounded part of
// the processor.
//
// One limiter for all of them was rejected: whoever has many watches would have most of it, and the others would wait
// behind.
type Shared struct {
	// perSecond is for all busy clusters together, and atLeast what each has however many there are.
	perSecond, atLeast float64

	mu   sync.Mutex
	busy map[*Allowance]time.Time
	// swept is when clusters that were not busy any more were last removed.
	swept time.Time
}

// NewShared returns what clusters share that are read at a pace.
func NewShared(p Pace) *Shared {
	return &Shared{perSecond: float64(p.SharedPerSecond), atLeast: float64(p.LeastPerSecond), busy: map[*Allowance]time.Time{}}
}

// share notes whether a cluster is busy, and returns how many events of it may be read in a second.
func (s *Shared) share(a *Allowance, isBusy bool, alone float64, now time.Time) float64 {
	if s == nil {
		return alone
	}
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
	if !isBusy {
		delete(s.busy, a)
		return alone
	}
	s.busy[a] = now
	return min(alone, max(s.atLeast, s.perSecond/float64(len(s.busy))))
}
