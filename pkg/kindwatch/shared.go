// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"slices"
	"sync"
)

// Shared watches the kinds with Kind.Shared on behalf of several Watchers of one cluster: once per kind, from when the
// first requesting Watcher is started until the last has ended or released the kind. Only Watchers call it.
type Shared struct {
	o    Options
	used *usage

	mu    sync.Mutex
	kinds map[Kind]*sharedKind
}

// NewShared returns a Shared that watches nothing yet. The options Handler, Reduce, KeepManager, Linger and Shared are
// ignored: each Watcher has its own.
func NewShared(o Options) (*Shared, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	o.Reduce, o.KeepManager = nil, ""
	return &Shared{o: o, used: &usage{}, kinds: map[Kind]*sharedKind{}}, nil
}

// sharedKind is a kind that is watched for its followers.
type sharedKind struct {
	*kindWatch
	all *Shared

	// telling is held while events are delivered, so that all followers receive them in the same order.
	telling sync.Mutex

	// followers and ended are guarded by the mutex of Shared. ended is nil until the watch runs, and closed when it has
	// ended.
	followers []*subscriber
	ended     chan struct{}
}

// subscriber is a Watcher that requests a shared kind.
type subscriber struct {
	watch   *sharedKind
	handler func(Event)

	// running and left are guarded by the mutex of Shared.
	running, left bool

	// caughtUp is set when the subscriber has received the cached objects, and state is the last one that it received.
	// Both are guarded by telling.
	caughtUp bool
	state    State

	// informed is closed when the subscriber first receives a state of the kind, or when it has left.
	informed   chan struct{}
	informOnce sync.Once
}

// join adds a subscriber, which receives nothing before start.
func (s *Shared) join(kind Kind, handler func(Event)) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k == nil {
		k = &sharedKind{all: s}
		o := s.o
		o.Handler = k.notify
		k.kindWatch = newKindWatch(kind, &o, s.used)
		s.kinds[kind] = k
	}
	f := &subscriber{watch: k, handler: handler, informed: make(chan struct{})}
	k.followers = append(k.followers, f)
	return f
}

// start begins watching the kind and delivering events to the subscriber. It does not call the handler.
func (f *subscriber) start(life context.Context) {
	k := f.watch
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	f.running = !f.left
	if f.left || k.ended != nil {
		return
	}
	k.ended = make(chan struct{})
	// The watch does not end with the first Watcher, but when the last one leaves.
	ctx, cancel := context.WithCancel(context.WithoutCancel(life))
	k.setCancel(cancel)
	go func() {
		defer close(k.ended)
		defer cancel()
		k.run(ctx)
	}()
}

// leave stops delivery to the subscriber, except for a running handler. The last one to leave ends the watch, and gets
// a channel that is closed when it has ended.
func (f *subscriber) leave() <-chan struct{} {
	k := f.watch
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	if f.left {
		return nil
	}
	f.running, f.left = false, true
	f.informOnce.Do(func() { close(f.informed) })
	k.followers = slices.DeleteFunc(slices.Clone(k.followers), func(other *subscriber) bool { return other == f })
	if len(k.followers) > 0 {
		return nil
	}
	delete(k.all.kinds, k.kind)
	k.stop()
	if k.ended == nil {
		return nil
	}
	return k.ended
}

// notify is the handler of the kind.
func (k *sharedKind) notify(e Event) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.all.mu.Lock()
	followers := k.followers
	k.all.mu.Unlock()
	for _, f := range followers {
		switch {
		case e.Type == StateChanged && e.State == StateSynced:
			f.replay(e)
		case e.Type == StateChanged || f.caughtUp:
			f.notify(e)
		}
		// Followers that have not caught up receive all cached objects when the kind is synced.
	}
}

// catchUp delivers the current state to a subscriber that joined later.
func (f *subscriber) catchUp() {
	k := f.watch
	k.telling.Lock()
	defer k.telling.Unlock()
	state, _ := k.currentState()
	e := Event{Type: StateChanged, Kind: k.kind, State: state}
	switch {
	case f.caughtUp || state == StateSyncing:
	case state == StateSynced:
		f.replay(e)
	default:
		f.notify(e)
	}
}

// replay delivers all objects to a subscriber if it has not received them, and then the synced event. The caller holds
// telling.
func (f *subscriber) replay(synced Event) {
	if !f.caughtUp {
		items, known := f.watch.store.list()
		if !known || !f.isRunning() {
			// The kind is no longer synced, and an event will follow; or the subscriber has not started, and will catch up.
			return
		}
		for _, i := range items {
			f.notify(Event{Type: Added, Kind: synced.Kind, Object: i.Object(), Initial: true})
		}
		f.caughtUp = true
	}
	f.notify(synced)
}

func (f *subscriber) isRunning() bool {
	f.watch.all.mu.Lock()
	defer f.watch.all.mu.Unlock()
	return f.running
}

func (f *subscriber) notify(e Event) {
	if !f.isRunning() {
		return
	}
	if e.Type != StateChanged {
		f.handler(e)
		return
	}
	// A subscriber that caught up may have received the state already.
	if f.state != e.State {
		f.state = e.State
		f.handler(e)
	}
	f.informOnce.Do(func() { close(f.informed) })
}
