// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"testing"
)

// alike is one of many clusters that store the same.
type alike struct {
	account *Account
	stored  []*Holder
	parked  int
}

// TestAlikeClustersThatFillTheBudgetGoOn has 1,000 clusters that want 120 % of the default budget.
func TestAlikeClustersThatFillTheBudgetGoOn(t *testing.T) {
	const clusters, kinds, kind = 1000, 3, 2 * step
	b := NewBudget(clusters * kinds * kind * 100 / 120 / step * step)
	var all []*alike
	list := func(c *alike, h *Holder) {
		if err := h.Hold(kind); err != nil {
			_ = h.Hold(0)
			c.parked++
		}
		for _, other := range all { // A holder that is requested to yield does so.
			for _, h := range other.stored {
				if h.yielding {
					_ = h.Hold(0)
					other.parked++
				}
			}
		}
	}
	for i := range clusters {
		all = append(all, &alike{account: b.Account("default", fmt.Sprint(i), nil)})
	}
	for range kinds {
		for _, c := range all {
			h := c.account.Holder(nil)
			c.stored = append(c.stored, h)
			list(c, h)
		}
	}
	parked := 0
	for i, c := range all {
		parked += c.parked
		if c.parked > 1 {
			t.Fatalf("want a cluster to keep what is within its share, got %d of %d kinds parked in cluster %d", c.parked, kinds, i)
		}
		// An answer to one write, and the events that follow.
		var inFlight []*Holder
		for n := range answersFloor / (32 << 10) {
			h := c.account.Answer(func(error) { t.Error("an answer was displaced") })
			inFlight = append(inFlight, h)
			if err := h.Hold(32 << 10); err != nil {
				t.Fatalf("want every answer to arrive, got %v for answer %d of cluster %d", err, n, i)
			}
		}
		if n := c.account.floor; n != 0 {
			t.Fatalf("want the floor used up, %d is left", n)
		}
		for _, h := range inFlight {
			h.Close()
		}
		if c.account.floor != answersFloor {
			t.Fatalf("want the floor given back, got %d", c.account.floor)
		}
	}
	if parked == 0 || parked > clusters*kinds/5 {
		t.Errorf("want some kinds parked, got %d of %d", parked, clusters*kinds)
	}
}

func TestAnswersAboveTheFloorAreCounted(t *testing.T) {
	b := NewBudget(64 * mib)
	a := b.Account("a", "one", nil)
	one, two := a.Answer(nil), a.Answer(nil)
	for h, n := range map[*Holder]int64{one: answersFloor, two: answersFloor} {
		if err := h.Hold(n); err != nil {
			t.Fatal(err)
		}
	}
	if used, _ := b.Used(); used != answersFloor {
		t.Errorf("want what is above the floor counted, got %d", used)
	}
	if err := two.Hold(65 * mib); err == nil {
		t.Error("want more than the budget refused")
	}
	one.Close()
	if err := two.Hold(answersFloor); err != nil {
		t.Fatal(err)
	}
	if used, _ := b.Used(); used != 0 {
		t.Errorf("want the floor to be free for others again, got %d", used)
	}
	two.Close()
	two.Close()
	if a.floor != answersFloor {
		t.Errorf("want the floor given back once, got %d", a.floor)
	}
}
