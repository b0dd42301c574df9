// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// Errors of Get and List. A missing object is an ordinary NotFound error of the API.
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

	// PerKind and Total bound what is kept of each kind and of all kinds together; see the defaults. A kind that is over its
	// limit, or with which the Watcher is, is StateTooLarge.
	PerKind Limit
	Total   Limit

	// KeepManager is a field manager. Of managedFields, objects keep what belongs to it and nothing else.
	KeepManager string

	// Clock measures the back-off; the real one by default.
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
	owners map[string]sets.Set[Kind]
	kinds  map[Kind]*kindWatch
	used   *usage

	// ctx is set while the Watcher runs. Kinds that were set before are started by Start.
	ctx     context.Context //nolint:containedctx // It is the life of the goroutines that Set starts, not of a call.
	stopped bool
	running sync.WaitGroup
}

// New returns a Watcher that watches nothing yet.
func New(o Options) (*Watcher, error) {
	if o.Client == nil || o.Handler == nil {
		return nil, errors.New("a client and a handler are required to watch kinds")
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
	o.PerKind = o.PerKind.withDefaults(DefaultObjectsPerKind, DefaultBytesPerKind)
	o.Total = o.Total.withDefaults(DefaultObjects, DefaultBytes)
	return &Watcher{o: o, owners: map[string]sets.Set[Kind]{}, kinds: map[Kind]*kindWatch{}, used: &usage{}}, nil
}

// Start watches what is asked for until ctx ends, and returns when the last goroutine is gone. It can be called once.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	if w.ctx != nil || w.stopped {
		w.mu.Unlock()
		return errors.New("a kind watcher can be started only once")
	}
	w.ctx = ctx
	for _, k := range w.kinds {
		w.run(ctx, k)
	}
	w.mu.Unlock()

	<-ctx.Done()

	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

// Set makes kinds all that owner asks for. Kinds that are asked for by nobody any more are stopped: no event of them is
// reported after Set has returned, other than one whose handler was already running.
func (w *Watcher) Set(owner string, kinds ...Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(kinds) == 0 {
		delete(w.owners, owner)
	} else {
		w.owners[owner] = sets.New(kinds...)
	}
	wanted := sets.New[Kind]()
	for _, ks := range w.owners {
		wanted = wanted.Union(ks)
	}

	for kind, k := range w.kinds {
		if !wanted.Has(kind) {
			k.stop()
			delete(w.kinds, kind)
		}
	}
	for kind := range wanted {
		if _, ok := w.kinds[kind]; ok {
			continue
		}
		k := newKindWatch(kind, w.o, w.used)
		w.kinds[kind] = k
		// What Set starts lives as long as the Watcher.
		w.run(w.ctx, k)
	}
}

// run starts the goroutine of a kind if the Watcher runs. The caller holds mu.
func (w *Watcher) run(life context.Context, k *kindWatch) {
	if k.invalid || life == nil || w.stopped || life.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(life)
	k.setCancel(cancel)
	w.running.Go(func() {
		defer cancel()
		k.run(ctx)
	})
}

func (w *Watcher) kind(kind Kind) *kindWatch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.kinds[kind]
}

// Get returns an object of a watched kind, ErrNotWatched, ErrNotSynced or NotFound. The object is shared and must not be
// changed.
func (w *Watcher) Get(kind Kind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	k := w.kind(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot get %q of %s: %w", key, kind, ErrNotWatched)
	}
	obj, synced := k.store.get(key)
	switch {
	case !synced:
		return nil, fmt.Errorf("cannot get %q of %s: %w", key, kind, ErrNotSynced)
	case obj == nil:
		return nil, apierrors.NewNotFound(kind.GroupResource(), key.Name)
	}
	return obj, nil
}

// List returns all objects of a watched kind in no order, ErrNotWatched or ErrNotSynced. The objects are shared and must
// not be changed.
func (w *Watcher) List(kind Kind) ([]*unstructured.Unstructured, error) {
	k := w.kind(kind)
	if k == nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, ErrNotWatched)
	}
	objs, synced := k.store.list()
	if !synced {
		return nil, fmt.Errorf("cannot list %s: %w", kind, ErrNotSynced)
	}
	return objs, nil
}

// State returns how far the watch of a kind has come and, unless that is StateSynced, why it has not come further.
func (w *Watcher) State(kind Kind) (State, string) {
	k := w.kind(kind)
	if k == nil {
		return StateUnwatched, ""
	}
	return k.currentState()
}

// WaitForSync waits until no watched kind is in StateSyncing any more: each is either synced, or known to be one that
// cannot be. It returns an error only if ctx ends first.
func (w *Watcher) WaitForSync(ctx context.Context) error {
	for {
		waiting := w.syncing()
		if waiting == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait until %s is synced: %w", waiting.kind, ctx.Err())
		case <-waiting.settled:
		}
	}
}

// syncing returns a kind that is not settled, or nil.
func (w *Watcher) syncing() *kindWatch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, k := range w.kinds {
		if s, _ := k.currentState(); s == StateSyncing {
			return k
		}
	}
	return nil
}

// Observe tells the Watcher of an object that the caller got from the API server in answer to a write. Get and List
// return it until the watch has caught up with it. Objects of kinds that are not watched are ignored.
func (w *Watcher) Observe(kind Kind, obj *unstructured.Unstructured) {
	if k := w.kind(kind); k != nil {
		k.store.observe(obj)
	}
}

// Poke tries at once to watch every kind of the resource that is parked: something about it, for example its CRD,
// has changed.
func (w *Watcher) Poke(resource schema.GroupResource) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for kind, k := range w.kinds {
		if kind.GroupResource() == resource {
			k.poke()
		}
	}
}
