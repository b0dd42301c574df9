// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"
	"time"
)

const (
	// busyFor is for how long a cluster counts as busy after it last was.
	busyFor = 10 * time.Second

	// longBusyAfter is after what time without a pause a cluster has longBusyShare of its share. The lists of a large
	// cluster that has just been connected are read by then.
	longBusyAfter = 2 * time.Minute
	longBusyShare = 0.2
)

// sharedPace shares out what is read of the clusters that send more than their burst at the same time. A few of them
// have what each may have for itself; of many, each is read so slowly that all of them together take a bounded part of
// the processor.
//
// One limiter for all of them was rejected: whoever has many watches would have most of it, and the others would wait
// behind.
type sharedPace struct {
	// perSecond is for all busy clusters together, and atLeast what each has however many there are.
	perSecond, atLeast float64

	mu   sync.Mutex
	busy map[*allowance]busyTime
	// swept is when clusters that were not busy any more were last removed.
	swept time.Time
}

// busyTime is since when a cluster has been busy, and when it last was.
type busyTime struct{ since, last time.Time }

func newSharedPace(p Pace) *sharedPace {
	return &sharedPace{perSecond: float64(p.SharedPerSecond), atLeast: float64(p.LeastPerSecond), busy: map[*allowance]busyTime{}}
}

// share notes whether a cluster is busy, and returns how many events of it may be read in a second.
func (s *sharedPace) share(a *allowance, isBusy bool, alone float64, now time.Time) float64 {
	if s == nil {
		return alone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= time.Second {
		s.swept = now
		for other, t := range s.busy {
			if now.Sub(t.last) >= busyFor {
				delete(s.busy, other)
			}
		}
	}
	t, wasBusy := s.busy[a]
	if isBusy {
		t.last = now
		if !wasBusy {
			t.since = now
		}
		s.busy[a] = t
	}
	if !isBusy && !wasBusy {
		return alone
	}
	share := max(s.atLeast, s.perSecond/float64(len(s.busy)))
	if now.Sub(t.since) >= longBusyAfter {
		share *= longBusyShare
	}
	return min(alone, share)
}
