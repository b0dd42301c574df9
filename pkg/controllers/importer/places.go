// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/fairshare"
)

// errNoPlace means that an import waits for its turn to ask.
var errNoPlace = errors.New("others are being asked")

// places are for imports that ask an imported cluster, or a token endpoint. There are half as many as workers, so that
// what hangs never holds up imports that ask nothing. Of these no namespace, which is what a tenant has, holds more
// than half, and who holds the fewest is next. Nobody holds a worker while waiting: who finds no place is woken when it
// has one.
type places struct {
	shared *fairshare.Places[string]
	wake   func(types.NamespacedName)

	mu sync.Mutex
	// turns are those of the imports that wait, and of those that were woken and have not come yet.
	turns map[types.NamespacedName]*fairshare.Turn[string]
}

// newPlaces is for an importer with so many workers.
func newPlaces(workers int, wake func(types.NamespacedName)) *places {
	n := max(1, workers/2)
	return &places{shared: fairshare.New[string](n, (n+1)/2), wake: wake, turns: map[types.NamespacedName]*fairshare.Turn[string]{}}
}

// enter asks for a place for an import. leave has to be called after the asking. If there is none, the import is woken
// as soon as it has one; until then it keeps its place in line, unless a pass settles without it.
func (s *places) enter(key types.NamespacedName) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turns[key]
	if turn == nil {
		turn = s.shared.Enter(key.Namespace, func() { s.wake(key) })
	}
	if !turn.Holds() {
		s.turns[key] = turn
		return nil, false
	}
	delete(s.turns, key)
	return turn.Leave, true
}

// settle gives up the turn of an import that does not wait any more.
func (s *places) settle(key types.NamespacedName) {
	s.mu.Lock()
	turn := s.turns[key]
	delete(s.turns, key)
	s.mu.Unlock()
	if turn != nil {
		turn.Leave()
	}
}

// wakes has imports be looked at.
type wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start is a source of requests.
func (w *wakes) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

func (w *wakes) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// enter asks for a place for the import of a pass.
func (r *Reconciler) enter(p *pass) (leave func(), ok bool) {
	if leave, ok = r.places.enter(p.key()); !ok {
		p.waits = true
	}
	return leave, ok
}
