// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"slices"
	"testing"
)

// keys of two namespaces.
func keyIn(namespace, name string) key { return key{Source: "fake", Namespace: namespace, Name: name} }

func TestAdmission(t *testing.T) {
	var woken []key
	a := NewAdmission(8, 4, func(k key) { woken = append(woken, k) }) // Four places to retry, two for a namespace.
	a1, a2, a3, b1 := keyIn("a", "1"), keyIn("a", "2"), keyIn("a", "3"), keyIn("b", "1")
	leave1, ok1 := a.Enter(a1, a1.Namespace, Retry)
	_, ok2 := a.Enter(a2, a2.Namespace, Retry)
	_, ok3 := a.Enter(a3, a3.Namespace, Retry)
	if !ok1 || !ok2 || ok3 {
		t.Errorf("want a namespace to have half of the room, got %t %t %t", ok1, ok2, ok3)
	}
	if _, ok := a.Enter(b1, b1.Namespace, Retry); !ok {
		t.Error("want room for another namespace")
	}
	for l := range Lanes {
		if l == Retry {
			continue
		}
		leave, ok := a.Enter(a3, a3.Namespace, l)
		if !ok {
			t.Fatalf("lane %d waits for another one", l)
		}
		leave()
	}
	if _, ok := a.Enter(a3, a3.Namespace, Retry); ok {
		t.Error("asking again is no way around")
	}
	if len(woken) != 0 {
		t.Errorf("want no waiter woken, got %v", woken)
	}
	leave1()
	if !slices.Equal(woken, []key{a3}) {
		t.Errorf("want the one that waits woken, once, got %v", woken)
	}
	if _, ok := a.Enter(a1, a1.Namespace, Retry); ok {
		t.Error("want the place kept for the one that was woken")
	}
	leave3, ok := a.Enter(a3, a3.Namespace, Retry)
	if !ok {
		t.Fatal("want the place kept for the one that was woken")
	}
	leave3()
	if !slices.Equal(woken, []key{a3, a1}) {
		t.Errorf("want the next one woken, got %v", woken)
	}
	// It was woken, and no longer needs the place; a2 holds its own.
	a.Settle(a1, [Lanes]bool{})
	if _, ok := a.Enter(a3, a3.Namespace, Retry); !ok {
		t.Error("want a place that is not needed to be free again")
	}
	if len(a.turns) != 0 {
		t.Errorf("want nothing left behind, got %v", a.turns)
	}
}

func TestSettleKeepsThePlaceInLine(t *testing.T) {
	var woken []key
	a := NewAdmission(1, 1, func(k key) { woken = append(woken, k) })
	k1, k2, k3 := keyIn("a", "1"), keyIn("b", "2"), keyIn("c", "3")
	leave, _ := a.Enter(k1, k1.Namespace, First)
	a.Enter(k2, k2.Namespace, First)
	a.Enter(k3, k3.Namespace, First)
	var waits [Lanes]bool
	waits[First] = true
	a.Settle(k2, waits)
	a.Settle(k3, [Lanes]bool{})
	leave()
	if !slices.Equal(woken, []key{k2}) {
		t.Errorf("want the first in line woken, got %v", woken)
	}
}

// TestEveryPlaceHasAWorker: a lane would wait for another one in the queue if there were fewer workers than places.
func TestEveryPlaceHasAWorker(t *testing.T) {
	for _, n := range []int{1, 50, 100, 1000} {
		sum := 0
		for l, lane := range Places(n) {
			if Lane(l) == Offboard {
				continue // Which no worker waits for.
			}
			sum += lane
		}
		if got := WorkersFor(n); got <= sum {
			t.Errorf("want more workers than the %d places, got %d", sum, got)
		}
	}
}
