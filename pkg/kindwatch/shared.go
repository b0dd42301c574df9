// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"slices"
	"sync"
)

// Shared watches the kinds with Kind.Shared on behalf of several Watchers of one cluster: each once, however many of
// them ask for it, from when the first of these is started until the last has ended or asks for it no more. Nobody but
// Watchers calls it.
type Shared struct {
	o    Options
	used *usage

	mu    sync.Mutex
	kinds map[Kind]*sharedKind
}

// NewShared returns a Shared that watches nothing yet. Of the options, Handler, Reduce, KeepManager, Linger and Shared
// mean nothing: the Watchers have theirs.
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

	// telling is held while followers are told something, so that all of them are told everything in one order.
	telling sync.Mutex

	// followers and ended are guarded by the mutex of Shared. ended is nil until the watch runs, and closed when it does
	// not any more.
	followers []*follower
	ended     chan struct{}
}

// follower is a Watcher that asks for a shared kind.
type follower struct {
	watch   *sharedKind
	handler func(Event)

	// running and left are guarded by the mutex of Shared.
	running, left bool

	// caughtUp is whether the follower was told of the objects that are known, and state the one that it was last told of.
	// Both are guarded by telling.
	caughtUp bool
	state    State

	// told is closed when the follower was told for the first time in which state the kind is, or when it has left.
	told     chan struct{}
	tellOnce sync.Once
}

// join adds a follower, who is told nothing before it starts.
func (s *Shared) join(kind Kind, handler func(Event)) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k == nil {
		k = &sharedKind{all: s}
		o := s.o
		o.Handler = k.tell
		k.kindWatch = newKindWatch(kind, &o, s.used)
		s.kinds[kind] = k
	}
	f := &follower{watch: k, handler: handler, told: make(chan struct{})}
	k.followers = append(k.followers, f)
	return f
}

// start has the kind watched, and the follower told of it, from now on. It does not call the handler.
func (f *follower) start(life context.Context) {
	k := f.watch
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	f.running = !f.left
	if f.left || k.ended != nil {
		return
	}
	k.ended = make(chan struct{})
	// The life of the first Watcher is not that of the watch, which ends when the last one leaves.
	ctx, cancel := context.WithCancel(context.WithoutCancel(life))
	k.setCancel(cancel)
	go func() {
		defer close(k.ended)
		defer cancel()
		k.run(ctx)
	}()
}

// leave ends that the follower is told anything, but for a handler that is running. Whoever leaves last ends the watch,
// and gets a channel that is closed when it has ended.
func (f *follower) leave() <-chan struct{} {
	k := f.watch
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	if f.left {
		return nil
	}
	f.running, f.left = false, true
	f.tellOnce.Do(func() { close(f.told) })
	k.followers = slices.DeleteFunc(slices.Clone(k.followers), func(other *follower) bool { return other == f })
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

// tell is the handler of the kind.
func (k *sharedKind) tell(e Event) {
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
			f.tell(e)
		}
		// Whoever has not caught up is told of everything that is known when the kind is synced.
	}
}

// catchUp tells a follower that came later what the others know.
func (f *follower) catchUp() {
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
		f.tell(e)
	}
}

// replay tells a follower of all objects if it does not know them, and that they are all. The caller holds telling.
func (f *follower) replay(synced Event) {
	if !f.caughtUp {
		items, known := f.watch.store.list()
		if !known || !f.isRunning() {
			// The kind is not synced any more, and will say when it is again; or the follower is not there yet, and will catch
			// up.
			return
		}
		for _, i := range items {
			f.tell(Event{Type: Added, Kind: synced.Kind, Object: i.object, Initial: true})
		}
		f.caughtUp = true
	}
	f.tell(synced)
}

func (f *follower) isRunning() bool {
	f.watch.all.mu.Lock()
	defer f.watch.all.mu.Unlock()
	return f.running
}

func (f *follower) tell(e Event) {
	if !f.isRunning() {
		return
	}
	if e.Type != StateChanged {
		f.handler(e)
		return
	}
	// One that caught up with a state before the others were told of it knows it.
	if f.state != e.State {
		f.state = e.State
		f.handler(e)
	}
	f.tellOnce.Do(func() { close(f.told) })
}
