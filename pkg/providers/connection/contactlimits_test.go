// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"testing"
)

// keys of two namespaces.
func keyIn(namespace, name string) Key { return Key{Source: "fake", Namespace: namespace, Name: name} }

func TestAdmission(t *testing.T) {
	var woken []Key
	a := newLanes(8, 4, func(k Key) { woken = append(woken, k) }) // Four places to retry, two for a namespace.
	a1, a2, a3, b1 := keyIn("a", "1"), keyIn("a", "2"), keyIn("a", "3"), keyIn("b", "1")
	leave1, ok1 := a[laneRetry].Acquire(a1, a1.Namespace)
	_, ok2 := a[laneRetry].Acquire(a2, a2.Namespace)
	_, ok3 := a[laneRetry].Acquire(a3, a3.Namespace)
	if !ok1 || !ok2 || ok3 {
		t.Errorf("want a namespace to have half of the room, got %t %t %t", ok1, ok2, ok3)
	}
	if _, ok := a[laneRetry].Acquire(b1, b1.Namespace); !ok {
		t.Error("want room for another namespace")
	}
	for l := range laneCount {
		if l == laneRetry {
			continue
		}
		leave, ok := a[l].Acquire(a3, a3.Namespace)
		if !ok {
			t.Fatalf("lane %d waits for another one", l)
		}
		leave()
	}
	if _, ok := a[laneRetry].Acquire(a3, a3.Namespace); ok {
		t.Error("asking again is no way around")
	}
	if len(woken) != 0 {
		t.Errorf("want no waiter woken, got %v", woken)
	}
	leave1()
	if !slices.Equal(woken, []Key{a3}) {
		t.Errorf("want the one that waits woken, once, got %v", woken)
	}
	if _, ok := a[laneRetry].Acquire(a1, a1.Namespace); ok {
		t.Error("want the place kept for the one that was woken")
	}
	leave3, ok := a[laneRetry].Acquire(a3, a3.Namespace)
	if !ok {
		t.Fatal("want the place kept for the one that was woken")
	}
	leave3()
	if !slices.Equal(woken, []Key{a3, a1}) {
		t.Errorf("want the next one woken, got %v", woken)
	}
	// It was woken, and no longer needs the place; a2 holds its own.
	a.settle(a1, [laneCount]bool{})
	if _, ok := a[laneRetry].Acquire(a3, a3.Namespace); !ok {
		t.Error("want a place that is not needed to be free again")
	}
	if free, waiting, _ := a[laneRetry].Shared.Usage(); free != 1 || waiting != 0 {
		t.Errorf("want no turn left behind, got %d free, %d waiting", free, waiting)
	}
}

func TestSettleKeepsThePlaceInLine(t *testing.T) {
	var woken []Key
	a := newLanes(1, 1, func(k Key) { woken = append(woken, k) })
	k1, k2, k3 := keyIn("a", "1"), keyIn("b", "2"), keyIn("c", "3")
	leave, _ := a[laneFirst].Acquire(k1, k1.Namespace)
	a[laneFirst].Acquire(k2, k2.Namespace)
	a[laneFirst].Acquire(k3, k3.Namespace)
	var waits [laneCount]bool
	waits[laneFirst] = true
	a.settle(k2, waits)
	a.settle(k3, [laneCount]bool{})
	leave()
	if !slices.Equal(woken, []Key{k2}) {
		t.Errorf("want the first in line woken, got %v", woken)
	}
}

// TestEveryPlaceHasAWorker: a lane would wait for another one in the queue if there were fewer workers than places.
func TestEveryPlaceHasAWorker(t *testing.T) {
	for _, n := range []int{1, 50, 100, 1000} {
		sum := 0
		for l, places := range lanePlaces(n) {
			if places == 0 {
				t.Errorf("lane %d has no place", l)
			}
			if lane(l) == laneOffboard {
				continue // Which no worker waits for.
			}
			sum += places
		}
		if got := workersFor(n); got <= sum {
			t.Errorf("want more workers than the %d places, got %d", sum, got)
		}
	}
}

func TestLanes(t *testing.T) {
	cases := map[string]struct {
		reason    string
		got, want lane
	}{
		"FirstAttempt": {
			"What was just enrolled does not wait for what failed before.", (&record{}).attemptLane(false), laneFirst,
		},
		"NextAttempt": {
			"An attempt after a failure costs a time-out, most likely.", (&record{attempts: 1}).attemptLane(false), laneRetry,
		},
		"Probe": {
			"A live connection is probed regardless of the others.", (&record{}).probeLane(), laneProbe,
		},
		"ProbeAfterAFailure": {
			"A connection that may be back does not wait for clusters that are dead.", (&record{probeFailures: 1}).probeLane(), laneRecovery,
		},
		"ProbeAfterASlowOne": {
			"Nor does it wait behind one that is slow.", (&record{slow: true}).probeLane(), laneRecovery,
		},
		"Replace": {
			"A connection is replaced regardless of failures.", (&record{attempts: 1}).attemptLane(true), laneReplace,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s want lane %d, got %d", tc.reason, tc.want, tc.got)
			}
		})
	}
}
