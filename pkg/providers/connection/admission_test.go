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
	a := newAdmission(8, 4, func(k Key) { woken = append(woken, k) }) // Four places to retry, two for a namespace.
	a1, a2, a3, b1 := keyIn("a", "1"), keyIn("a", "2"), keyIn("a", "3"), keyIn("b", "1")
	leave1, ok1 := a.enter(a1, laneRetry)
	_, ok2 := a.enter(a2, laneRetry)
	_, ok3 := a.enter(a3, laneRetry)
	if !ok1 || !ok2 || ok3 {
		t.Errorf("want a namespace to have half of the room, got %t %t %t", ok1, ok2, ok3)
	}
	if _, ok := a.enter(b1, laneRetry); !ok {
		t.Error("want room for another namespace")
	}
	for l := range lanes {
		if l == laneRetry {
			continue
		}
		leave, ok := a.enter(a3, l)
		if !ok {
			t.Fatalf("lane %d waits for another one", l)
		}
		leave()
	}
	if _, ok := a.enter(a3, laneRetry); ok {
		t.Error("asking again is no way around")
	}
	if len(woken) != 0 {
		t.Errorf("want nobody woken, got %v", woken)
	}
	leave1()
	if !slices.Equal(woken, []Key{a3}) {
		t.Errorf("want the one that waits woken, once, got %v", woken)
	}
	if _, ok := a.enter(a1, laneRetry); ok {
		t.Error("want the place kept for the one that was woken")
	}
	leave3, ok := a.enter(a3, laneRetry)
	if !ok {
		t.Fatal("want the place kept for the one that was woken")
	}
	leave3()
	if !slices.Equal(woken, []Key{a3, a1}) {
		t.Errorf("want the next one woken, got %v", woken)
	}
	// It was woken, and does not need the place any more; a2 holds its own.
	a.settle(a1, [lanes]bool{})
	if _, ok := a.enter(a3, laneRetry); !ok {
		t.Error("want a place that is not needed to be free again")
	}
	if len(a.turns) != 0 {
		t.Errorf("want nothing left behind, got %v", a.turns)
	}
}

func TestSettleKeepsThePlaceInLine(t *testing.T) {
	var woken []Key
	a := newAdmission(1, 1, func(k Key) { woken = append(woken, k) })
	k1, k2, k3 := keyIn("a", "1"), keyIn("b", "2"), keyIn("c", "3")
	leave, _ := a.enter(k1, laneFirst)
	a.enter(k2, laneFirst)
	a.enter(k3, laneFirst)
	var waits [lanes]bool
	waits[laneFirst] = true
	a.settle(k2, waits)
	a.settle(k3, [lanes]bool{})
	leave()
	if !slices.Equal(woken, []Key{k2}) {
		t.Errorf("want the first in line woken, got %v", woken)
	}
}

// TestEveryPlaceHasAWorker: a lane would wait for another one in the queue if there were fewer workers than places.
func TestEveryPlaceHasAWorker(t *testing.T) {
	for _, n := range []int{1, 50, 100, 1000} {
		sum := 0
		for _, lane := range places(n) {
			sum += lane
		}
		if got := workersFor(n); got <= sum {
			t.Errorf("want more workers than the %d places, got %d", sum, got)
		}
	}
}
