// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package places

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// ErrNoPlace means that an import waits for its turn to ask.
var ErrNoPlace = errors.New("others are being queried")

// Slots bound how many imports query an imported cluster, or a token endpoint, at once. There are half as many as
// workers, so hanging queries never block imports that query nothing. No namespace, which is a tenant, holds more than
// half of them, and the one that holds the fewest is next. No import holds a worker while it waits: one without a
// place is woken when it has one.
type Slots struct {
	Shared *limits.Semaphore[string]
	wake   func(types.NamespacedName)

	mu sync.Mutex
	// turns are those of waiting imports, and of woken ones that have not entered yet.
	turns map[types.NamespacedName]*limits.Waiter[string]
}

// New creates the Places of an importer with so many workers.
func New(workers int, wake func(types.NamespacedName)) *Slots {
	n := max(1, workers/2)
	return &Slots{Shared: limits.NewSemaphore[string](n, (n+1)/2), wake: wake, turns: map[types.NamespacedName]*limits.Waiter[string]{}}
}

// Acquire requests a place for an import. The caller calls leave afterwards. If there is none, the import is woken as
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

// Release gives up the turn of an import that no longer waits.
func (s *Slots) Release(key types.NamespacedName) {
	s.mu.Lock()
	turn := s.turns[key]
	delete(s.turns, key)
	s.mu.Unlock()
	if turn != nil {
		turn.Release()
	}
}

// Wakes requeues imports.
type Wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start is a source of requests.
func (w *Wakes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// Wake requeues an import.
func (w *Wakes) Wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}
