// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"sync"
)

// ErrNoPlace means that a key waits for its turn.
var ErrNoPlace = errors.New("others are being queried")

// Slots are a Semaphore for the keys of a work queue, whose parties are namespaces of the hub (tenants). No key holds a
// worker while it waits: one without a place is woken when it has one.
type Slots[K comparable] struct {
	Shared *Semaphore[string]
	wake   func(K)

	mu sync.Mutex
	// turns are those of waiting keys, and of woken ones that have not entered yet.
	turns map[K]*Waiter[string]
}

// NewSlots returns Slots with n places; see NewSemaphore.
func NewSlots[K comparable](n, share int, wake func(K)) *Slots[K] {
	return &Slots[K]{Shared: NewSemaphore[string](n, share), wake: wake, turns: map[K]*Waiter[string]{}}
}

// Acquire requests a place for a key of a namespace. The caller calls leave afterwards. If there is none, the key is
// woken as soon as it has one; until then it keeps its place in line, of the namespace that came first, unless it is
// released.
func (s *Slots[K]) Acquire(key K, namespace string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turns[key]
	if turn == nil {
		turn = s.Shared.Acquire(namespace, func() { s.wake(key) })
	}
	if !turn.Holds() {
		s.turns[key] = turn
		return nil, false
	}
	delete(s.turns, key)
	return turn.Release, true
}

// Release gives up the turn of a key that no longer waits.
func (s *Slots[K]) Release(key K) {
	s.mu.Lock()
	turn := s.turns[key]
	delete(s.turns, key)
	s.mu.Unlock()
	if turn != nil {
		turn.Release()
	}
}
