// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ErrNoPlace means that an object waits for its turn.
var ErrNoPlace = errors.New("others are being queried")

// Slots bound for how many objects of the hub foreign servers are queried at once. There are half as many as workers,
// so hanging queries never block objects that query nothing. No namespace, which is a tenant, holds more than half of
// them, and the one that holds the fewest is next. No object holds a worker while it waits: one without a place is
// woken when it has one.
type Slots struct {
	Shared *Semaphore[string]
	wake   func(types.NamespacedName)

	mu sync.Mutex
	// turns are those of waiting objects, and of woken ones that have not entered yet.
	turns map[types.NamespacedName]*Waiter[string]
}

// NewSlots returns the Slots of a controller with so many workers.
func NewSlots(workers int, wake func(types.NamespacedName)) *Slots {
	return &Slots{Shared: NewSemaphore[string](workers/2, 0), wake: wake, turns: map[types.NamespacedName]*Waiter[string]{}}
}

// Acquire requests a place for an object. The caller calls leave afterwards. If there is none, the object is woken as
// soon as it has one; until then it keeps its place in line, unless a pass settles without it.
func (s *Slots) Acquire(key types.NamespacedName) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turns[key]
	if turn == nil {
		turn = s.Shared.Acquire(key.Namespace, func() { s.wake(key) })
	}
	if !turn.Holds() {
		s.turns[key] = turn
		return nil, false
	}
	delete(s.turns, key)
	return turn.Release, true
}

// Release gives up the turn of an object that no longer waits.
func (s *Slots) Release(key types.NamespacedName) {
	s.mu.Lock()
	turn := s.turns[key]
	delete(s.turns, key)
	s.mu.Unlock()
	if turn != nil {
		turn.Release()
	}
}
