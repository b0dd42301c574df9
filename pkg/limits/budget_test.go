// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

const mib = 1 << 20

func TestWhatFitsIsGrantedToAnybody(t *testing.T) {
	b := NewBudget(64 * mib)
	hog, small := b.Account("a", "hog", nil), b.Account("a", "small", nil)
	if err := hog.Holder(nil).Hold(64 * mib); err != nil {
		t.Errorf("a budget that is idle must be granted whole, got %v", err)
	}
	if err := small.Holder(nil).Hold(step - 1); err != nil {
		t.Errorf("what is below a step is not counted, got %v", err)
	}
}

func TestWhoHoldsMostYields(t *testing.T) {
	b := NewBudget(64 * mib)
	var reported error
	hog := b.Account("tenants", "hog", func(err error) { reported = err })
	yielded := make(chan error, 1)
	large, little := hog.Holder(func(err error) { yielded <- err }), hog.Holder(func(error) { t.Error("the smaller holder was displaced") })
	for h, n := range map[*Holder]int64{large: 50 * mib, little: 14 * mib} {
		if err := h.Hold(n); err != nil {
			t.Fatal(err)
		}
	}
	honest := b.Account("default", "honest", nil).Holder(nil)
	if err := honest.Hold(4 * mib); err != nil {
		t.Errorf("who is within its share must be granted what it asks for, got %v", err)
	}
	var e *ShareError
	if err := <-yielded; !errors.As(err, &e) || e.Cluster != "hog" || e.Class != "tenants" || !errors.Is(reported, ErrShare) {
		t.Errorf("a displaced holder must be informed whose share was exceeded, got %v and %v", err, reported)
	}
	if err := honest.Hold(30 * mib); !errors.Is(err, ErrBusy) {
		t.Errorf("until the holder has yielded there is an eighth more and no more, got %v", err)
	}
	if err := large.Hold(51 * mib); !errors.Is(err, ErrShare) {
		t.Errorf("a holder that shall yield must not have more, got %v", err)
	}
	_ = large.Hold(0)
	if err := honest.Hold(30 * mib); err != nil {
		t.Errorf("then there is room, got %v", err)
	}
	if err := large.Hold(48 * mib); !errors.Is(err, ErrShare) {
		t.Errorf("who would hold more than its share of a full budget must be refused, got %v", err)
	}
	if err := large.Hold(20 * mib); err != nil {
		t.Errorf("what fits is granted again, got %v", err)
	}
}

func TestManyClustersOfOneClassHaveOneShare(t *testing.T) {
	b := NewBudget(64 * mib)
	var all []*Holder
	for i := range 24 {
		h := b.Account("tenants", fmt.Sprint(i), nil).Holder(nil)
		_ = h.Hold(4 * mib)
		all = append(all, h)
	}
	h := b.Account("default", "honest", nil).Holder(nil)
	for n := int64(0); n <= 32*mib; n += mib {
		err := h.Hold(n)
		for _, other := range all {
			if other.yielding {
				_ = other.Hold(0)
			}
		}
		if errors.Is(err, ErrBusy) {
			err = h.Hold(n)
		}
		if err != nil {
			t.Fatalf("a class has half of the budget of two, got %v at %d MiB", err, n/mib)
		}
	}
}

func TestTwoLargeOnesDoNotTakeTurns(t *testing.T) {
	b := NewBudget(64 * mib)
	one, two := b.Account("a", "one", nil).Holder(func(error) { t.Error("displaced") }), b.Account("a", "two", nil).Holder(nil)
	_ = one.Hold(33 * mib)
	_ = two.Hold(31 * mib)
	if err := two.Hold(33 * mib); !errors.Is(err, ErrShare) {
		t.Errorf("want it refused, got %v", err)
	}
}

func TestClosingGivesEverythingBack(t *testing.T) {
	b := NewBudget(64 * mib)
	a := b.Account("a", "one", nil)
	h := a.Holder(nil)
	_ = h.Hold(10 * mib)
	a.Close()
	a.Close()
	h.Close()
	if err := h.Hold(100 * mib); err != nil {
		t.Errorf("what is closed is granted everything, got %v", err)
	}
	if err := a.Holder(nil).Hold(100 * mib); err != nil {
		t.Errorf("so is a holder of a closed account, got %v", err)
	}
	if used, all := b.Used(); used != 0 || len(all) != 0 || len(b.classes) != 0 {
		t.Errorf("want nothing left, got %d %v", used, all)
	}
	var none *Budget
	if err := none.Account("a", "b", nil).Holder(nil).Hold(1 << 60); err != nil {
		t.Errorf("no budget has no limit, got %v", err)
	}
}

// TestModel performs random operations, and checks after each step what doc.go promises.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := NewBudget(64 * step)
		var accounts []*Account
		var holders []*Holder
		for range 300 {
			switch op := r.IntN(20); {
			case op == 0 || len(accounts) < 2:
				accounts = append(accounts, b.Account(fmt.Sprint(r.IntN(3)), fmt.Sprint(len(accounts)), nil))
			case op == 1:
				accounts[r.IntN(len(accounts))].Close()
			case op == 2 && len(holders) > 0:
				holders[r.IntN(len(holders))].Close()
			case op < 6 || len(holders) == 0:
				holders = append(holders, accounts[r.IntN(len(accounts))].open(nil, op == 5))
			case op < 9:
				for _, h := range holders { // Like holders that are requested to yield.
					if h.yielding && r.IntN(2) == 0 {
						_ = h.Hold(0)
					}
				}
			default:
				holdAtRandom(t, r, b, holders)
			}
			checkSums(t, b)
		}
	}
}

func holdAtRandom(t *testing.T, r *rand.Rand, b *Budget, holders []*Holder) {
	t.Helper()
	h := holders[r.IntN(len(holders))]
	if h.closed {
		return
	}
	a, total := h.account, int64(r.IntN(40))*step
	if h.answer {
		uncounted := total <= a.floor+h.floor
		if err := h.Hold(total); err != nil && uncounted && !h.yielding {
			t.Fatalf("an answer within the floor was refused: %v", err)
		}
		return
	}
	yielding := map[*Holder]bool{}
	before := map[*Account]int64{}
	for _, other := range holders {
		yielding[other] = other.yielding
		before[other.account] = other.account.used - other.account.yields
	}
	free := b.capacity - (b.used - b.yields)
	more, would := total-h.held, a.used-a.yields+total-h.held
	err := h.Hold(total)
	switch {
	case more <= 0 && err != nil:
		t.Fatalf("less was refused: %v", err)
	case errors.Is(err, ErrShare) && more <= free && !h.yielding:
		t.Fatalf("%d was refused though %d is free", more, free)
	case errors.Is(err, ErrShare) && would <= a.equalShare() && !h.yielding:
		t.Fatalf("%d was refused, within the share of %d", would, a.equalShare())
	case errors.Is(err, ErrBusy) && b.used+more <= b.capacity+b.slack:
		t.Fatalf("busy, though only %d of %d is used", b.used, b.capacity)
	}
	for _, other := range holders {
		switch {
		case !other.yielding || yielding[other]:
		case other.account == a:
			t.Fatal("an account displaced itself")
		case errors.Is(err, ErrShare):
			t.Fatal("a holder was displaced for a request that was refused")
		case before[other.account] <= other.account.equalShare():
			t.Fatalf("displaced with %d, within the share of %d", before[other.account], other.account.equalShare())
		}
	}
}

// checkSums recomputes every sum.
func checkSums(t *testing.T, b *Budget) {
	t.Helper()
	var used, yields int64
	for _, c := range b.classes {
		var ofClass, yieldsOfClass int64
		for a := range c.accounts {
			var ofAccount, yieldsOfAccount int64
			for h := range a.holders {
				ofAccount += h.held
				if h.yielding {
					yieldsOfAccount += h.held
				}
				if h.yielding && h.held == 0 {
					t.Fatal("a holder yields nothing")
				}
			}
			floor := a.floor
			for h := range a.holders {
				floor += h.floor
			}
			if floor != answersFloor || a.floor < 0 {
				t.Fatalf("floor: %d, %d with its parts", a.floor, floor)
			}
			if a.used != ofAccount || a.yields != yieldsOfAccount {
				t.Fatalf("account: %d and %d, want %d and %d", a.used, a.yields, ofAccount, yieldsOfAccount)
			}
			ofClass, yieldsOfClass = ofClass+ofAccount, yieldsOfClass+yieldsOfAccount
		}
		if c.used != ofClass || c.yields != yieldsOfClass {
			t.Fatalf("class: %d and %d, want %d and %d", c.used, c.yields, ofClass, yieldsOfClass)
		}
		used, yields = used+ofClass, yields+yieldsOfClass
	}
	if b.used != used || b.yields != yields || used > b.capacity+b.slack {
		t.Fatalf("budget: %d and %d, want %d and %d of %d", b.used, b.yields, used, yields, b.capacity)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := NewBudget(mib)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				a := b.Account(fmt.Sprint(i%2), fmt.Sprint(i), func(error) {})
				var h *Holder
				ready := make(chan struct{})
				h = a.Holder(func(error) { <-ready; _ = h.Hold(0) })
				close(ready)
				for n := range int64(20) {
					_ = h.Hold(n * step * 2)
				}
				a.Close()
			}
		})
	}
	all.Wait()
	if used, _ := b.Used(); used != 0 {
		t.Errorf("want nothing left, got %d", used)
	}
}

func BenchmarkHoldOfAFullBudget(b *testing.B) {
	all := NewBudget(5000 * 2 * step)
	var h *Holder
	for i := range 5000 {
		h = all.Account("a", fmt.Sprint(i), nil).Holder(nil)
		_ = h.Hold(2 * step)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = h.Hold(3 * step)
	}
}

func TestAccountThatMovesCountsInItsNewClass(t *testing.T) {
	b := NewBudget(64 * mib)
	a := b.Account("tenants", "moves", nil)
	h := a.Holder(func(error) {})
	if err := h.Hold(60 * mib); err != nil {
		t.Fatal(err)
	}
	if err := b.Account("default", "honest", nil).Holder(nil).Hold(8 * mib); err != nil { // The first account yields.
		t.Fatal(err)
	}
	a.Move("gold")
	a.Move("gold")
	_, used := b.Used()
	for _, u := range used {
		if u.Cluster == "moves" && (u.Class != "gold" || u.Bytes != 60*mib) {
			t.Errorf("want what is held to count in the new class, got %+v", u)
		}
	}
	if old, now := b.classes["tenants"], b.classes["gold"]; old != nil || now == nil || now.used != 60*mib || now.yields != 60*mib {
		t.Errorf("want everything to have moved, got %+v and %+v", old, now)
	}
	_ = h.Hold(0)
	if now := b.classes["gold"]; now.used != 0 || now.yields != 0 || b.yields != 0 {
		t.Errorf("want nothing to be left of what was given back, got %+v", now)
	}
	a.Close()
	a.Move("silver")
	if len(b.classes) != 1 {
		t.Errorf("want an account that is closed to be in no class, got %d", len(b.classes))
	}
}
