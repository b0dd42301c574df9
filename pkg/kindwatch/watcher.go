// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// Errors of Get, List, Entry, Lookup and Entries. A missing object is an ordinary NotFound error of the API.
var (
	// ErrNotWatched: no owner requests the kind.
	ErrNotWatched = errors.New("kind is not watched")

	// ErrNotSynced: the objects of the kind are unknown, because they were not listed yet, because the cluster does not
	// serve the kind, or because access is forbidden. It says nothing about whether an object exists.
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
	Client dynamicclient.Objects

	// MetadataClient lists and watches the kinds with MetadataOnly. Required if there are any.
	MetadataClient dynamicclient.Metadata

	// Handler is called for every event, in order within a kind, from as many goroutines as there are kinds. It must not
	// block, and may call the Watcher. Required.
	Handler func(Event)

	// PerKind and Total limit what is kept of each kind and of all kinds together; see the defaults. A kind that exceeds
	// its limit, or makes the Watcher exceed its own, is StateTooLarge.
	PerKind Limit
	Total   Limit

	// Account is charged with stored and arriving objects. A kind that must yield, or is refused, is StateTooLarge. nil
	// means no charge.
	Account *limits.Account

	// Progress receives the kinds that are not synced; it may be nil.
	Progress *Progress

	// Guard recovers panics of what handles the cluster's objects, and ends the connection to it. Without one, a panic
	// clears the kind's cache, and it is listed again with back-off.
	Guard *guard.Guard

	// Reduce makes the Watcher store records instead of objects. It is called while objects arrive, so that no list is
	// ever in memory whole.
	Reduce ReduceFunc

	// Keep returns what is stored of an object: the object, or a smaller one with its identity and resource version. It is
	// called while objects arrive, with the estimated memory of the object, and must not change it. Without it, and for
	// kinds with Shared, all of it is stored.
	Keep func(kind Kind, obj *unstructured.Unstructured, size int64) *unstructured.Unstructured

	// Generation counts how often Reduce has begun to keep more than before, from 1. Its value when a list of a kind began
	// is returned by Generations once that list is complete. It must not block. Without it, nothing is counted.
	Generation func() uint64

	// Listed limits how many objects in a list of a kind may be rejected. It is for Watchers with Reduce, for which
	// PerKind and Total limit only what is kept. Negative means no limit.
	Listed int64

	// Shared watches the kinds with Kind.Shared, for this Watcher and others. Without one, this Watcher does.
	Shared *Shared

	// Lists are the places to list a kind, for all Watchers that share them; nil means no limit. Lists need the most
	// memory and CPU, and after a start or a network failure all kinds of all clusters are listed. The parties are
	// clusters (Account; Watchers without one count alone): none of them should be able to hold all, as a cluster would
	// whose lists never end.
	Lists *limits.Semaphore[any]

	// Linger is how long a kind without owners is still watched, so that short-lived owners do not cause repeated lists.
	Linger time.Duration

	// KeepManager is a field manager. Of managedFields, only entries of this manager, or of those with its name and "-" as
	// a prefix, are kept. Clients of pkg/dynamicclient drop the others earlier, and must know it.
	KeepManager string

	// StaleAfter is how long a synced kind may be neither listed nor watched before it is StateStale.
	StaleAfter time.Duration

	// Clock measures the back-off, Linger, StaleAfter, and how long a list counts; the real one by default.
	Clock clock.Clock

	// MinBackoff and MaxBackoff bound the time between attempts to watch a failing kind. Each wait is jittered: it is up
	// to twice the back-off.
	MinBackoff time.Duration
	MaxBackoff time.Duration
}

// A Watcher watches a changing set of kinds in one cluster. Its methods are safe for concurrent use, before and after
// Start.
type Watcher struct {
	o Options

	mu     sync.RWMutex
	owners map[string][]*subscription
	kinds  map[Kind]*subscription
	used   *usage

	// idle is signalled when a kind loses its last owner and lingers.
	idle chan struct{}

	// ctx is set while the Watcher runs. Kinds that were set before are started by Start.
	ctx     context.Context //nolint:containedctx // It is the life of the goroutines that Set starts, not of a call.
	stopped bool
	running sync.WaitGroup
}

// A hold is a Watcher's reference to a kind, from the first request until it has lingered.
type subscription struct {
	*kindWatch

	// subscriber connects to Options.Shared; nil if this Watcher watches the kind itself.
	subscriber *subscriber

	// owners is the number of owners of the kind, and idleSince is when the last one released it.
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
		o: o, owners: map[string][]*subscription{}, kinds: map[Kind]*subscription{}, used: &usage{}, idle: make(chan struct{}, 1),
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

// Start watches the requested kinds until ctx ends, and returns when the last goroutine has ended. For a shared kind
// that others still follow, the handler may still be running. It can be called once.
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
		if h.subscriber != nil {
			w.leave(h.subscriber)
		}
	}
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

// Set replaces the kinds of owner. Its cost depends on the kinds of that owner, not on the number of owners.
//
// Kinds without owners are stopped: at once without Linger, and then no event of them is reported after Set has
// returned, other than one whose handler was already running. Otherwise they are watched, and can be read, until Linger
// is over.
func (w *Watcher) Set(owner string, kinds ...Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// New kinds are taken before old ones are released, so that kinds in both are not stopped.
	var held []*subscription
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

// Release removes all kinds of owner.
func (w *Watcher) Release(owner string) { w.Set(owner) }

// take counts an owner of a kind, and watches it if it is the first. The caller holds mu.
func (w *Watcher) take(kind Kind) *subscription {
	h, ok := w.kinds[kind]
	if !ok {
		h = w.newSubscription(kind)
		w.kinds[kind] = h
		// Kinds that Set starts live as long as the Watcher.
		w.run(w.ctx, h)
	}
	h.owners++
	return h
}

func (w *Watcher) newSubscription(kind Kind) *subscription {
	if kind.Shared && w.o.Shared != nil && !w.stopped {
		f := w.o.Shared.join(kind, w.o.Handler)
		return &subscription{kindWatch: f.watch.kindWatch, subscriber: f}
	}
	return &subscription{kindWatch: newKindWatch(kind, &w.o, w.used)}
}

// releaseOne counts one owner less. The caller holds mu.
func (w *Watcher) releaseOne(h *subscription) {
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
func (w *Watcher) drop(h *subscription) {
	if h.subscriber != nil {
		w.leave(h.subscriber)
	} else {
		h.stop()
	}
	delete(w.kinds, h.kind)
}

// leave stops following a shared kind. The last Watcher to leave waits for its goroutine, as for its own. The caller
// holds mu.
func (w *Watcher) leave(f *subscriber) {
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

// dropIdle stops the kinds that have lingered long enough, and returns the time until the next one is due, if there is
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
func (w *Watcher) run(life context.Context, h *subscription) {
	if h.invalid || life == nil || w.stopped || life.Err() != nil {
		return
	}
	if h.subscriber != nil {
		h.subscriber.start(life)
		// Cached objects are delivered from here, where no lock is held.
		w.running.Go(func() { _ = w.o.Guard.Do("following a kind", h.subscriber.catchUp) })
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
