// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/guard"
)

// Errors of Get, List, Entry, Lookup and Entries. A missing object is an ordinary NotFound error of the API.
var (
	// ErrNotWatched: no owner asks for the kind.
	ErrNotWatched = errors.New("kind is not watched")

	// ErrNotSynced: the objects of the kind are not known, because they were not listed yet, because the cluster does not
	// serve the kind, or because it does not let us. It says nothing about whether an object exists.
	ErrNotSynced = errors.New("objects of the kind are not known")
)

// Defaults of Options.
const (
	DefaultMinBackoff = time.Second
	DefaultMaxBackoff = 2 * time.Minute
	DefaultStaleAfter = 5 * time.Minute
)

// Options configure a Watcher.
type Options struct {
	// Client lists and watches. Required.
	Client dynamic.Interface

	// MetadataClient lists and watches the kinds with MetadataOnly. Required if there are any.
	MetadataClient metadata.Interface

	// Handler is called for every event, in order within a kind, from as many goroutines as there are kinds. It must not
	// block, and may call the Watcher. Required.
	Handler func(Event)

	// PerKind and Total bound what is kept of each kind and of all kinds together; see the defaults. A kind that is over
	// its limit, or with which the Watcher is, is StateTooLarge.
	PerKind Limit
	Total   Limit

	// Account is charged with what is kept, and with what arrives. Whoever has to yield, or is refused, is StateTooLarge.
	// nil is no charge.
	Account *budget.Account

	// Progress is told which kinds are not synced; nil if nobody asks.
	Progress *Progress

	// Guard recovers panics of what handles the cluster's objects, and ends the connection to it. Without one, a panic
	// costs a kind what is known of it, and it is listed again with back-off.
	Guard *guard.Guard

	// Reduce makes the Watcher keep records instead of objects. It is called while objects arrive, so that no list is ever
	// in memory whole.
	Reduce ReduceFunc

	// Generation counts how often Reduce has begun to keep more than before, from 1. What it was when a list of a kind
	// began is what Generations returns once that list is complete. It must not block. Without it, nothing is counted.
	Generation func() uint64

	// Listed bounds how many objects of a kind that are not kept a list may bring. It is for Watchers with Reduce, which
	// PerKind and Total bound only in what they keep. Negative is no bound.
	Listed int64

	// Shared watches the kinds that are marked as such, for this Watcher and others. Without one, this Watcher does.
	Shared *Shared

	// Lists bounds how many kinds are listed at once by all Watchers that share it. nil is no bound.
	Lists *ListGate

	// Linger is how long a kind that nobody asks for any more is still watched, so that owners who come and go do not have
	// it listed again and again.
	Linger time.Duration

	// KeepManager is a field manager. Of managedFields, objects keep what belongs to it or to one whose name begins with
	// it and "-", and nothing else. Clients of pkg/dynamicclient drop the others before that, and have to know it.
	KeepManager string

	// StaleAfter is for how long a kind that was synced may be neither listed nor watched before it is StateStale.
	StaleAfter time.Duration

	// Clock measures the back-off, Linger, StaleAfter, and how long a list counts at the gate; the real one by default.
	Clock clock.Clock

	// MinBackoff and MaxBackoff bound the time between two attempts to watch a kind that cannot be watched. Each wait is
	// jittered: it is up to twice as long as the back-off says.
	MinBackoff time.Duration
	MaxBackoff time.Duration
}

// A Watcher watches a changing set of kinds in one cluster. Its methods may be called from everywhere, before and after
// Start.
type Watcher struct {
	o Options

	mu     sync.RWMutex
	owners map[string][]*hold
	kinds  map[Kind]*hold
	used   *usage

	// idle is told when a kind loses its last owner and lingers.
	idle chan struct{}

	// ctx is set while the Watcher runs. Kinds that were set before are started by Start.
	ctx     context.Context //nolint:containedctx // It is the life of the goroutines that Set starts, not of a call.
	stopped bool
	running sync.WaitGroup
}

// A hold is what a Watcher has of a kind as long as somebody asks it for that kind, and a little longer.
type hold struct {
	*kindWatch

	// follower has the kind watched by Options.Shared; nil if this Watcher does it.
	follower *follower

	// owners is how many owners ask for the kind, and idleSince is when the last one ceased to.
	owners    int
	idleSince time.Time
}

// New returns a Watcher that watches nothing yet.
func New(o Options) (*Watcher, error) {
	if o.Handler == nil {
		return nil, errors.New("a handler is required to watch kinds")
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	return &Watcher{
		o: o, owners: map[string][]*hold{}, kinds: map[Kind]*hold{}, used: &usage{}, idle: make(chan struct{}, 1),
	}, nil
}

func (o *Options) setDefaults() error {
	if o.Client == nil {
		return errors.New("a client is required to watch kinds")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = DefaultMinBackoff
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = DefaultMaxBackoff
	}
	if o.StaleAfter <= 0 {
		o.StaleAfter = DefaultStaleAfter
	}
	o.PerKind = o.PerKind.withDefaults(DefaultObjectsPerKind, DefaultBytesPerKind)
	o.Total = o.Total.withDefaults(DefaultObjects, DefaultBytes)
	if o.Listed == 0 {
		o.Listed = DefaultListed
	}
	return nil
}

// Start watches what is asked for until ctx ends, and returns when the last goroutine is gone. Of a shared kind that
// others still follow, the handler may be running then. It can be called once.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	if w.ctx != nil || w.stopped {
		w.mu.Unlock()
		return errors.New("a kind watcher can be started only once")
	}
	w.ctx = ctx
	for _, h := range w.kinds {
		w.run(ctx, h)
	}
	w.mu.Unlock()

	w.reap(ctx)

	w.mu.Lock()
	w.stopped = true
	for _, h := range w.kinds {
		if h.follower != nil {
			w.leave(h.follower)
		}
	}
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

// Set makes kinds all that owner asks for. Its cost depends on the kinds of that owner, and not on how many owners
// there are.
//
// Kinds that are asked for by nobody any more are stopped: at once without Linger, and then no event of them is
// reported after Set has returned, other than one whose handler was already running. Otherwise they are watched, and
// answer questions, until Linger is over.
func (w *Watcher) Set(owner string, kinds ...Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// What is wanted is taken before what was is let go, so that nothing is stopped that is in both.
	var held []*hold
	for kind := range sets.New(kinds...) {
		held = append(held, w.take(kind))
	}
	for _, k := range w.owners[owner] {
		w.releaseOne(k)
	}
	if len(held) == 0 {
		delete(w.owners, owner)
	} else {
		w.owners[owner] = held
	}
}

// Release ends what owner asks for.
func (w *Watcher) Release(owner string) { w.Set(owner) }

// take counts an owner of a kind, and watches it if it is the first. The caller holds mu.
func (w *Watcher) take(kind Kind) *hold {
	h, ok := w.kinds[kind]
	if !ok {
		h = w.hold(kind)
		w.kinds[kind] = h
		// What Set starts lives as long as the Watcher.
		w.run(w.ctx, h)
	}
	h.owners++
	return h
}

func (w *Watcher) hold(kind Kind) *hold {
	if kind.Shared && w.o.Shared != nil && !w.stopped {
		f := w.o.Shared.join(kind, w.o.Handler)
		return &hold{kindWatch: f.watch.kindWatch, follower: f}
	}
	return &hold{kindWatch: newKindWatch(kind, &w.o, w.used)}
}

// releaseOne counts one owner less. The caller holds mu.
func (w *Watcher) releaseOne(h *hold) {
	h.owners--
	switch {
	case h.owners > 0:
	case w.o.Linger <= 0:
		w.drop(h)
	default:
		h.idleSince = w.o.Clock.Now()
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// drop stops a kind. The caller holds mu.
func (w *Watcher) drop(h *hold) {
	if h.follower != nil {
		w.leave(h.follower)
	} else {
		h.stop()
	}
	delete(w.kinds, h.kind)
}

// leave ends that the Watcher is told of a shared kind. Whoever leaves last waits for its goroutine, as for its own.
// The caller holds mu.
func (w *Watcher) leave(f *follower) {
	if ended := f.leave(); ended != nil {
		w.running.Go(func() { <-ended })
	}
}

// reap stops kinds that have lingered, until ctx ends.
func (w *Watcher) reap(ctx context.Context) {
	for {
		var due <-chan time.Time
		stop := func() bool { return false }
		if next, lingering := w.dropIdle(); lingering {
			timer := w.o.Clock.NewTimer(next)
			due, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
			stop()
			return
		case <-w.idle:
		case <-due:
		}
		stop()
	}
}

// dropIdle stops the kinds that have lingered long enough, and returns how long the next one still has to, if there is
// one.
func (w *Watcher) dropIdle() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, lingering := time.Duration(0), false
	for _, h := range w.kinds {
		if h.owners > 0 {
			continue
		}
		left := w.o.Linger - w.o.Clock.Since(h.idleSince)
		switch {
		case left <= 0:
			w.drop(h)
		case !lingering || left < next:
			next, lingering = left, true
		}
	}
	return next, lingering
}

// run starts the goroutine of a kind if the Watcher runs. The caller holds mu.
func (w *Watcher) run(life context.Context, h *hold) {
	if h.invalid || life == nil || w.stopped || life.Err() != nil {
		return
	}
	if h.follower != nil {
		h.follower.start(life)
		// What was known before is told from here, where no lock is held.
		w.running.Go(func() { _ = w.o.Guard.Do("following a kind", h.follower.catchUp) })
		return
	}
	ctx, cancel := context.WithCancel(life)
	h.setCancel(cancel)
	w.running.Go(func() {
		defer cancel()
		h.run(ctx)
	})
}

// kind returns the watch of a kind, or nil.
func (w *Watcher) kind(kind Kind) *kindWatch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if h := w.kinds[kind]; h != nil {
		return h.kindWatch
	}
	return nil
}
