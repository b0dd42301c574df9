// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"sync"

	"github.com/masthead-dev/masthead/pkg/guard"
)

const (
	// step is the smallest amount that is counted, in bytes.
	step = 16 << 10
	// answersFloor is what the answers in flight of an Account may hold uncounted: a page of ten small objects, say.
	answersFloor = 256 << 10
)

// ErrBusy means that there is no room yet: other Holders were requested to yield.
var ErrBusy = errors.New("the memory budget is full for the moment")

// ErrShare matches every *ShareError with errors.Is.
var ErrShare = errors.New("the share of the memory budget is exceeded")

// A ShareError means that a cluster has, or requests, more than its share of a full budget. It is the same for the same
// cluster, so that it can be used in a condition.
type ShareError struct {
	// Class and Cluster identify the share.
	Class, Cluster string
	// Capacity of the whole budget, in bytes.
	Capacity int64
}

// Error implements error.
func (e *ShareError) Error() string {
	return fmt.Sprintf("cluster %q of class %q needs more than its share of the manager's memory budget of %d MiB, which is full",
		e.Cluster, e.Class, e.Capacity>>20)
}

// Is implements errors.Is for ErrShare.
func (e *ShareError) Is(target error) bool { return target == ErrShare }

// A Budget is an amount of memory and its current usage. Its methods, and those of its Accounts and Holders, are safe
// for concurrent use. A nil Budget has no limit, and nil Accounts and Holders.
type Budget struct {
	capacity, slack int64

	mu      sync.Mutex
	used    int64
	yields  int64 // The part of used that Holders were requested to release.
	classes map[string]*class
}

type class struct {
	name         string
	used, yields int64
	accounts     map[*Account]struct{}
}

// An Account is the usage of one connection to a cluster.
type Account struct {
	budget  *Budget
	class   *class
	cluster string
	notify  func(error)

	used, yields int64
	// floor is what is left of answersFloor.
	floor   int64
	holders map[*Holder]struct{}
	closed  bool
}

// A Holder is one item of an Account's usage.
type Holder struct {
	account *Account
	yield   func(error)
	held    int64
	// answer means that this is an answer in flight, and floor is its part of the Account's floor.
	answer   bool
	floor    int64
	yielding bool
	closed   bool
}

// NewBudget returns a Budget of the given bytes.
func NewBudget(capacity int64) *Budget {
	return &Budget{capacity: capacity, slack: capacity / 8, classes: map[string]*class{}}
}

// Capacity of the budget in bytes.
func (b *Budget) Capacity() int64 {
	if b == nil {
		return 0
	}
	return b.capacity
}

// Account opens an account for a connection to a cluster. notify, which may be nil, is called each time the account is
// refused or displaced because of its share. It must not block or call the Budget.
func (b *Budget) Account(className, cluster string, notify func(error)) *Account {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &Account{budget: b, cluster: cluster, notify: notify, floor: answersFloor, holders: map[*Holder]struct{}{}}
	a.join(className)
	return a
}

// Move moves the account's usage to another class. Call it when the cluster's class has changed.
func (a *Account) Move(className string) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.closed || a.class.name == className {
		return
	}
	a.leave()
	a.join(className)
}

// join adds the account to a class. The caller holds mu.
func (a *Account) join(className string) {
	c := a.budget.classes[className]
	if c == nil {
		c = &class{name: className, accounts: map[*Account]struct{}{}}
		a.budget.classes[className] = c
	}
	a.class = c
	c.accounts[a] = struct{}{}
	c.used += a.used
	c.yields += a.yields
}

// leave is the opposite of join.
func (a *Account) leave() {
	c := a.class
	delete(c.accounts, a)
	c.used -= a.used
	c.yields -= a.yields
	if len(c.accounts) == 0 {
		delete(a.budget.classes, c.name)
	}
}

// Close releases everything that the account's holders hold, and closes them.
func (a *Account) Close() {
	if a == nil {
		return
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	for h := range a.holders {
		h.set(0)
		h.closed = true
	}
	a.holders = nil
	a.leave()
}

// Holder returns a holder that holds nothing yet. yield, which may be nil, is called in its own goroutine when the
// holder is displaced, and must soon release everything with Hold(0) or Close; until then the holder cannot get more.
func (a *Account) Holder(yield func(error)) *Holder { return a.open(yield, false) }

// Answer is Holder for an answer in flight. Only what the answers of the account hold above a floor is counted: a small
// answer is never refused, however full the budget is. It may be that of a write which was executed.
func (a *Account) Answer(yield func(error)) *Holder { return a.open(yield, true) }

func (a *Account) open(yield func(error), answer bool) *Holder {
	if a == nil {
		return nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	h := &Holder{account: a, yield: yield, answer: answer, closed: a.closed}
	if !a.closed {
		a.holders[h] = struct{}{}
	}
	return h
}

// Hold sets what is held to total bytes. A decrease is always granted. An error is a *ShareError or ErrBusy, and
// nothing changes then. A closed holder holds nothing, and is granted everything: its user is about to end.
func (h *Holder) Hold(total int64) error {
	if h == nil {
		return nil
	}
	a := h.account
	b := a.budget
	b.mu.Lock()
	want := (max(0, total) - h.ofFloor(total)) / step * step
	if h.closed || want == h.held {
		b.mu.Unlock()
		return nil
	}
	if want < h.held {
		h.set(want)
		b.mu.Unlock()
		return nil
	}
	displaced, err := b.grant(h, want-h.held)
	if err == nil {
		h.set(want)
	}
	b.mu.Unlock()

	for _, d := range displaced {
		d.tellToYield()
	}
	if errors.Is(err, ErrShare) && a.notify != nil {
		a.notify(err)
	}
	return err
}

// Close releases everything, for good.
func (h *Holder) Close() {
	if h == nil {
		return
	}
	b := h.account.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.closed {
		return
	}
	h.ofFloor(0)
	h.set(0)
	h.closed = true
	delete(h.account.holders, h)
}

// ofFloor returns how much of a total is held uncounted. The caller holds mu.
func (h *Holder) ofFloor(total int64) int64 {
	if !h.answer || h.closed {
		return 0
	}
	left := h.account.floor + h.floor
	h.floor = min(max(0, total), left)
	h.account.floor = left - h.floor
	return h.floor
}

// set changes what is held. The caller holds mu.
func (h *Holder) set(held int64) {
	if h.yielding {
		h.addYields(-h.held)
		h.yielding = held > 0
		if h.yielding {
			h.addYields(held)
		}
	}
	change := held - h.held
	h.held = held
	h.account.used += change
	h.account.class.used += change
	h.account.budget.used += change
}

func (h *Holder) addYields(n int64) {
	h.account.yields += n
	h.account.class.yields += n
	h.account.budget.yields += n
}

// displace marks a holder as yielding, or undoes that. The caller holds mu.
func (h *Holder) displace(on bool) {
	h.yielding = on
	if on {
		h.addYields(h.held)
	} else {
		h.addYields(-h.held)
	}
}

func (h *Holder) tellToYield() {
	h.account.budget.mu.Lock()
	err := h.account.shareError()
	h.account.budget.mu.Unlock()
	if h.account.notify != nil {
		h.account.notify(err)
	}
	if h.yield != nil {
		var g *guard.Guard
		g.Go("yielding", func() { h.yield(err) }) // It may take locks that the caller of Hold has.
	}
}

// shareError returns the error for the account's exceeded share. The caller holds mu.
func (a *Account) shareError() error {
	return &ShareError{Class: a.class.name, Cluster: a.cluster, Capacity: a.budget.capacity}
}

// grant decides whether a holder may get n more bytes, and which others must yield for it. The caller holds mu.
func (b *Budget) grant(h *Holder, n int64) ([]*Holder, error) {
	a := h.account
	if h.yielding {
		return nil, a.shareError()
	}
	var displaced []*Holder
	for b.used-b.yields+n > b.capacity {
		largest := b.largest(a, n)
		victim := largest.largestHolder()
		if largest == a || victim == nil || !a.mayDisplace(largest, n) {
			for _, d := range displaced {
				d.displace(false)
			}
			return nil, a.shareError()
		}
		victim.displace(true)
		displaced = append(displaced, victim)
	}
	if b.used+n > b.capacity+b.slack {
		return displaced, ErrBusy
	}
	return displaced, nil
}

// largest returns the account that holds most in the class that holds most, as if account a had n more bytes. Yielding
// amounts do not count.
func (b *Budget) largest(a *Account, n int64) *Account {
	extra := func(is bool) int64 {
		if is {
			return n
		}
		return 0
	}
	most, class := int64(-1), a.class
	for _, c := range b.classes {
		if held := c.used - c.yields + extra(c == a.class); held > most || held == most && c == a.class {
			most, class = held, c
		}
	}
	most, largest := -1, a
	for other := range class.accounts {
		if held := other.used - other.yields + extra(other == a); held > most || held == most && other == a {
			most, largest = held, other
		}
	}
	return largest
}

func (a *Account) largestHolder() *Holder {
	var largest *Holder
	for h := range a.holders {
		if !h.yielding && h.held > 0 && (largest == nil || h.held > largest.held) {
			largest = h
		}
	}
	return largest
}

// mayDisplace reports whether an account that would have n more bytes may make another one yield.
func (a *Account) mayDisplace(other *Account, n int64) bool {
	would := a.used - a.yields + n
	return would <= a.equalShare() || would <= (other.used-other.yields)/2
}

// equalShare returns the account's equal share of the budget.
func (a *Account) equalShare() int64 {
	return a.budget.capacity / int64(len(a.budget.classes)) / int64(max(1, len(a.class.accounts)))
}

// Usage is the memory held for a cluster.
type Usage struct {
	Class, Cluster string
	// Bytes that are held.
	Bytes int64
}

// Used returns the total in bytes, and one Usage per account.
func (b *Budget) Used() (int64, []Usage) {
	if b == nil {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Usage
	for _, c := range b.classes {
		for a := range c.accounts {
			all = append(all, Usage{Class: c.name, Cluster: a.cluster, Bytes: a.used})
		}
	}
	return b.used, all
}
