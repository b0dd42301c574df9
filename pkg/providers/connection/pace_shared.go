// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"
	"time"
)

// busyFor is for how long a cluster counts as busy after it last was.
const busyFor = 10 * time.Second

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
	busy map[*allowance]time.Time
	// swept is when clusters that were not busy any more were last removed.
	swept time.Time
}

func newSharedPace(l Limits) *sharedPace {
	l = l.withDefaults()
	return &sharedPace{
		perSecond: float64(l.SharedEventsPerSecond), atLeast: float64(l.LeastEventsPerSecond), busy: map[*allowance]time.Time{},
	}
}

// share notes whether a cluster is busy, and returns how many of its events may be read in a second.
func (s *sharedPace) share(a *allowance, isBusy bool, alone float64, now time.Time) float64 {
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
	if isBusy {
		s.busy[a] = now
	}
	if _, ok := s.busy[a]; !ok {
		return alone
	}
	return min(alone, max(s.atLeast, s.perSecond/float64(len(s.busy))))
}
