// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrder(t *testing.T) {
	cases := map[string]struct {
		reason   string
		n, share int
		// steps are "a1", in which a turn of party a asks for a place, and "-a1", in which that turn leaves.
		steps string
		want  string
	}{
		"Places":   {"There are as many places as there are.", 2, 2, "a1 b1 c1", "a1 b1"},
		"Share":    {"No party has more than its share, though a place is free.", 4, 2, "a1 a2 a3", "a1 a2"},
		"Fewest":   {"The party that holds the fewest is next, even if another waits longer.", 3, 2, "a1 a2 b1 a3 b2 c1 -a1", "a1 a2 b1 c1"},
		"Longest":  {"Of equals, who waits longest.", 1, 1, "a1 c1 b1 -a1", "a1 c1"},
		"InOrder":  {"A party's turns are served in order.", 1, 1, "a1 a2 a3 -a1 -a2", "a1 a2 a3"},
		"GivesUp":  {"Who stops waiting is passed over.", 1, 1, "a1 b1 c1 -b1 -a1", "a1 c1"},
		"Twice":    {"Leaving twice gives back one place.", 1, 1, "a1 b1 c1 -a1 -a1", "a1 b1"},
		"AllAgain": {"What is given back can be had again.", 1, 1, "a1 -a1 b1 -b1 a2", "a1 b1 a2"},
		"AtLeast":  {"There is at least one place, and a share of at least one.", 0, 0, "a1 a2", "a1"},
		"Half":     {"Without a share it is half, rounded up.", 3, 0, "a1 a2 a3 b1", "a1 a2 b1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := NewSemaphore[string](tc.n, tc.share)
			turns := map[string]*Waiter[string]{}
			var got []string
			for step := range strings.FieldsSeq(tc.steps) {
				if leaves, ok := strings.CutPrefix(step, "-"); ok {
					turns[leaves].Release()
					continue
				}
				turn := p.Acquire(step[:1], func() { got = append(got, step) })
				if turn.Holds() {
					got = append(got, step)
				}
				turns[step] = turn
			}
			if diff := cmp.Diff(strings.Fields(tc.want), got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			for _, turn := range turns {
				turn.Release()
			}
			for _, turn := range turns {
				turn.Release()
			}
			if free, waiting, parties := p.Usage(); free != max(1, tc.n) || waiting != 0 || parties != 0 {
				t.Errorf("want nothing left behind, got %d free, %d waiting, %d parties", free, waiting, parties)
			}
		})
	}
}

// TestConcurrently has many parties that ask for places, give up and give back at the same time, and checks the limits
// at every moment.
func TestConcurrently(t *testing.T) {
	const places, share = 8, 3
	p := NewSemaphore[int](places, share)
	var all atomic.Int64
	var held [6]atomic.Int64
	var running sync.WaitGroup
	for worker := range 24 {
		running.Go(func() {
			party := worker % len(held)
			for range 500 {
				granted := make(chan struct{})
				turn := p.Acquire(party, func() { close(granted) })
				if !turn.Holds() && rand.IntN(4) == 0 {
					turn.Release()
					continue
				}
				if !turn.Holds() {
					select {
					case <-granted:
					case <-time.After(time.Minute):
						t.Error("a place was lost")
						return
					}
				}
				if n := all.Add(1); n > places {
					t.Errorf("%d places are taken, of %d", n, places)
				}
				if n := held[party].Add(1); n > share {
					t.Errorf("a party has %d places, of %d", n, share)
				}
				all.Add(-1)
				held[party].Add(-1)
				turn.Release()
			}
		})
	}
	running.Wait()
	if free, waiting, parties := p.Usage(); free != places || waiting != 0 || parties != 0 {
		t.Errorf("want nothing left behind, got %d free, %d waiting, %d parties", free, waiting, parties)
	}
}

// serve lets n parties wait for one place, and serves all of them.
func serve(n int) *Semaphore[string] {
	p := NewSemaphore[string](1, 1)
	turns := make([]*Waiter[string], 0, n)
	for i := range n {
		turns = append(turns, p.Acquire(strconv.Itoa(i), nil))
	}
	for _, turn := range turns {
		turn.Release()
	}
	return p
}

// TestWorkIsLinear counts comparisons: with twice as many waiting parties, each costs about as much.
func TestWorkIsLinear(t *testing.T) {
	few, many := serve(2000).next.compared, serve(4000).next.compared
	if many > few*5/2 {
		t.Errorf("want about twice the comparisons for twice the parties, got %d and %d", few, many)
	}
}

// BenchmarkGrant serves n parties that wait for one place. The time for each must grow no faster than the logarithm of
// n.
func BenchmarkGrant(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				serve(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/turn")
		})
	}
}
