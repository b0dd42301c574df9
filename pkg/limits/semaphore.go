// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"sync"
)

// A Semaphore has places that are distributed among parties, each identified by a P. Its methods are safe for
// concurrent use.
type Semaphore[P comparable] struct {
	share int

	mu   sync.Mutex
	free int
	// last is the number of the last turn. Numbers order the turns.
	last    uint64
	waiting int
	// parties hold a place or wait for one.
	parties map[P]*party[P]
	// next are the waiting parties that hold less than their share.
	next ranking[P]
}

// NewSemaphore returns n places, at least one, of which no party may hold more than share; zero means half of them, so
// that one that never leaves cannot take all.
func NewSemaphore[P comparable](n, share int) *Semaphore[P] {
	n = max(1, n)
	return &Semaphore[P]{share: min(max(1, cmp.Or(share, (n+1)/2)), n), free: n, parties: map[P]*party[P]{}}
}

// party is guarded by the lock of the places.
type party[P comparable] struct {
	id   P
	held int
	// turns are the waiting ones, the longest waiting first.
	turns list.List
	// rank is the index in next, -1 if it is not in it.
	rank int
}

// longest returns the turn that has waited longest.
func (p *party[P]) longest() *Waiter[P] { return p.turns.Front().Value.(*Waiter[P]) } //nolint:forcetypeassert // Nothing else is in it.

// A Waiter is one request for a place.
type Waiter[P comparable] struct {
	places  *Semaphore[P]
	party   *party[P]
	number  uint64
	granted func()

	// Guarded by the lock of the places. waits is its queue element, nil if it does not wait.
	waits *list.Element
	holds bool
}

// Acquire requests a place on behalf of a party. If the turn gets one at once, granted is not called. Otherwise (no
// place is free, or the party holds its share) it is called when the turn gets one: once, without a lock held, by the
// caller that released the place; it must not block.
func (s *Semaphore[P]) Acquire(id P, granted func()) *Waiter[P] {
	s.mu.Lock()
	p := s.parties[id]
	if p == nil {
		p = &party[P]{id: id, rank: -1}
		s.parties[id] = p
	}
	s.last++
	t := &Waiter[P]{places: s, party: p, number: s.last}
	t.waits = p.turns.PushBack(t)
	s.waiting++
	s.place(p)
	callbacks := s.grant() // It can only be this turn: another would not have waited. It has no callback yet.
	t.granted = granted
	s.mu.Unlock()
	grantAll(callbacks)
	return t
}

// Wait requests a place and waits until the turn has one, or ctx ends: then it returns nil. Call leave to release it.
func (s *Semaphore[P]) Wait(ctx context.Context, id P) (leave func()) {
	granted := make(chan struct{})
	t := s.Acquire(id, func() { close(granted) })
	if !t.Holds() {
		select {
		case <-granted:
		case <-ctx.Done():
			t.Release()
			return nil
		}
	}
	return t.Release
}

// Holds reports whether the turn has a place.
func (t *Waiter[P]) Holds() bool {
	t.places.mu.Lock()
	defer t.places.mu.Unlock()
	return t.holds
}

// Release releases the place, or stops waiting for one. Calling it again does nothing.
func (t *Waiter[P]) Release() {
	s := t.places
	s.mu.Lock()
	switch {
	case t.holds:
		t.holds = false
		t.party.held--
		s.free++
	case t.waits != nil:
		t.party.turns.Remove(t.waits)
		t.waits = nil
		s.waiting--
	default:
		s.mu.Unlock()
		return
	}
	s.place(t.party)
	callbacks := s.grant()
	s.mu.Unlock()
	grantAll(callbacks)
}

// Usage returns how many places are free, how many turns wait, and how many parties hold a place or wait.
func (s *Semaphore[P]) Usage() (free, waiting, parties int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free, s.waiting, len(s.parties)
}

func grantAll(granted []func()) {
	for _, fn := range granted {
		fn()
	}
}

// grant gives free places to the next parties, and returns the callbacks to call. The caller holds mu.
func (s *Semaphore[P]) grant() []func() {
	var callbacks []func()
	for s.free > 0 && s.next.Len() > 0 {
		p := s.next.parties[0]
		t := p.longest()
		p.turns.Remove(t.waits)
		t.waits, t.holds = nil, true
		p.held++
		s.waiting--
		s.free--
		s.place(p)
		if t.granted != nil {
			callbacks = append(callbacks, t.granted)
		}
	}
	return callbacks
}

// place updates a party's position after a change: it adds it to next, moves or removes it, or drops it. The caller
// holds mu.
func (s *Semaphore[P]) place(p *party[P]) {
	eligible := p.turns.Len() > 0 && p.held < s.share
	switch {
	case eligible && p.rank < 0:
		heap.Push(&s.next, p)
	case eligible:
		heap.Fix(&s.next, p.rank)
	case p.rank >= 0:
		heap.Remove(&s.next, p.rank)
	}
	if p.held == 0 && p.turns.Len() == 0 {
		delete(s.parties, p.id)
	}
}

// ranking is a heap of parties, the next one first. It counts comparisons, for tests.
type ranking[P comparable] struct {
	parties  []*party[P]
	compared int
}

func (r *ranking[P]) Len() int { return len(r.parties) }

func (r *ranking[P]) Less(i, j int) bool {
	r.compared++
	a, b := r.parties[i], r.parties[j]
	if a.held != b.held {
		return a.held < b.held
	}
	return a.longest().number < b.longest().number
}

func (r *ranking[P]) Swap(i, j int) {
	r.parties[i], r.parties[j] = r.parties[j], r.parties[i]
	r.parties[i].rank, r.parties[j].rank = i, j
}

// Push implements heap.Interface.
func (r *ranking[P]) Push(x any) {
	p := x.(*party[P]) //nolint:forcetypeassert // Nothing else is pushed.
	p.rank = len(r.parties)
	r.parties = append(r.parties, p)
}

// Pop implements heap.Interface.
func (r *ranking[P]) Pop() any {
	last := len(r.parties) - 1
	p := r.parties[last]
	r.parties[last] = nil
	r.parties = r.parties[:last]
	p.rank = -1
	return p
}
