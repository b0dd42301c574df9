// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// healthyAfter is how long a watch must have lasted for the next failure to start with the shortest back-off again.
const healthyAfter = 2 * time.Minute

// kindWatch is the reflector of one kind, what it needs to go on after errors, and the store that it fills.
type kindWatch struct {
	kind  Kind
	o     Options
	store *store
	poked chan struct{}

	// settled is closed when the kind leaves StateSyncing, to which it never returns, or is stopped.
	settled chan struct{}

	mu     sync.Mutex
	cancel context.CancelFunc

	// abort ends the attempt that is under way.
	abort context.CancelCauseFunc

	stopped bool
	state   State
	message string

	// invalid says that the kind cannot exist.
	invalid bool
}

func newKindWatch(kind Kind, o Options, used *usage) *kindWatch {
	k := &kindWatch{
		kind: kind, o: o, poked: make(chan struct{}, 1), settled: make(chan struct{}), state: StateSyncing,
	}
	k.store = newStore(kind, k.emit, k.synced)
	k.store.budget = budget{perKind: o.PerKind, total: o.Total, all: used}
	k.store.overflow = k.overflow
	k.store.keepManager = o.KeepManager
	if err := kind.Validate(); err != nil {
		// No server can serve it, so none is asked.
		k.state, k.message, k.invalid = StateNotServed, err.Error(), true
		close(k.settled)
	}
	return k
}

func (k *kindWatch) setCancel(cancel context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel = cancel
}

// stop ends the goroutine and suppresses every further event. It does not wait, so that a handler may call it.
func (k *kindWatch) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped && k.state == StateSyncing {
		close(k.settled)
	}
	k.stopped = true
	if k.cancel != nil {
		k.cancel()
	}
	k.store.close()
}

// overflow ends the attempt under way, because what it brings is more than is kept.
func (k *kindWatch) overflow() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.abort != nil {
		k.abort(errTooLarge)
	}
}

// attempt lists and watches once, and says why that ended.
func (k *kindWatch) attempt(ctx context.Context, reflector *cache.Reflector) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	k.mu.Lock()
	k.abort = abort
	k.mu.Unlock()
	err := reflector.ListAndWatchWithContext(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errTooLarge) {
		return cause
	}
	return err
}

func (k *kindWatch) poke() {
	select {
	case k.poked <- struct{}{}:
	default:
	}
}

func (k *kindWatch) currentState() (State, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.message
}

func (k *kindWatch) setState(s State, message string) {
	k.mu.Lock()
	changed := k.state != s
	if changed && k.state == StateSyncing && !k.stopped {
		close(k.settled)
	}
	k.state, k.message = s, message
	k.mu.Unlock()
	if changed {
		k.emit(Event{Type: StateChanged, Kind: k.kind, State: s})
	}
}

// synced is called by the store after a list has replaced what it knew, and after the events of that.
func (k *kindWatch) synced() { k.setState(StateSynced, "") }

func (k *kindWatch) emit(e Event) {
	k.mu.Lock()
	stopped := k.stopped
	k.mu.Unlock()
	if !stopped {
		k.o.Handler(e)
	}
}

// run lists and watches until ctx ends. The loop is ours rather than Reflector.RunWithContext's, because that one can
// neither be woken during its back-off nor tell why it failed.
func (k *kindWatch) run(ctx context.Context) {
	// The reflector logs every failure of a kind that is not served. What there is to say is said by State.
	ctx = klog.NewContext(ctx, logr.Discard())
	backoff := k.newBackoff()
	reflector := k.newReflector()

	for ctx.Err() == nil {
		started := k.o.Clock.Now()
		err := k.attempt(ctx, reflector)
		if ctx.Err() != nil {
			return
		}

		switch {
		case errors.Is(err, errTooLarge):
			k.store.drop()
			k.setState(StateTooLarge, k.tooLarge())
			reflector = k.newReflector()
		case isNotServed(err):
			k.store.unsync()
			k.setState(StateNotServed, "the cluster does not serve "+k.kind.String())
			// A kind that comes back may come back with another history, where the resource version of the old one
			// means nothing.
			reflector = k.newReflector()
		case apierrors.IsForbidden(err):
			k.store.unsync()
			k.setState(StateForbidden, "the cluster does not let Masthead list and watch "+k.kind.String())
		case err != nil && !k.store.isSynced():
			k.setState(k.parkedState(), "cannot list and watch "+k.kind.String()+": "+err.Error())
		}
		if err == nil || k.o.Clock.Since(started) > healthyAfter {
			backoff = k.newBackoff()
		}

		timer := k.o.Clock.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
		case <-k.poked:
			backoff = k.newBackoff()
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (k *kindWatch) tooLarge() string {
	return fmt.Sprintf("the cluster has more of %s than Masthead keeps: %d objects or %d MiB of a kind, %d objects or %d MiB of all kinds",
		k.kind, k.o.PerKind.Objects, k.o.PerKind.Bytes>>20, k.o.Total.Objects, k.o.Total.Bytes>>20)
}

// parkedState keeps what is known about why a kind is parked when an attempt fails for a passing reason.
func (k *kindWatch) parkedState() State {
	if s, _ := k.currentState(); s != StateSynced {
		return s
	}
	return StateSyncing
}

func (k *kindWatch) newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: k.o.MinBackoff, Cap: k.o.MaxBackoff, Factor: 2, Jitter: 1, Steps: 30}
}

// isNotServed recognises the answers of an API server that has no such kind, or none any more. For a list, 404 cannot
// mean anything else.
func isNotServed(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

func (k *kindWatch) newReflector() *cache.Reflector {
	return cache.NewReflectorWithOptions(k.listWatch(), nil, k.store, cache.ReflectorOptions{
		Name:            "kindwatch",
		TypeDescription: k.kind.String(),
		Clock:           k.o.Clock,
	})
}

func (k *kindWatch) listWatch() cache.ListerWatcher {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = k.kind.LabelSelector, k.kind.FieldSelector
		return o
	}
	gvr := k.kind.GroupVersionResource()
	if k.kind.MetadataOnly {
		r := k.o.MetadataClient.Resource(gvr)
		return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return k.counted(o, func() (runtime.Object, error) { return r.List(ctx, selected(o)) })
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				k.store.listing()
				return r.Watch(ctx, selected(o))
			},
		}, k.o.MetadataClient)
	}
	r := k.o.Client.Resource(gvr)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return k.counted(o, func() (runtime.Object, error) { return r.List(ctx, selected(o)) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			k.store.listing()
			return r.Watch(ctx, selected(o))
		},
	}, k.o.Client)
}

// counted counts a page of a list against the budget before the next one is asked for.
func (k *kindWatch) counted(o metav1.ListOptions, list func() (runtime.Object, error)) (runtime.Object, error) {
	if o.Continue == "" {
		k.store.listing()
	}
	page, err := list()
	if err != nil {
		return nil, err
	}
	var items []*unstructured.Unstructured
	switch page := page.(type) {
	case *unstructured.UnstructuredList:
		for i := range page.Items {
			if u, ok := k.kind.admitted(&page.Items[i], k.o.KeepManager); ok {
				items = append(items, u)
			}
		}
	case *metav1.PartialObjectMetadataList:
		for i := range page.Items {
			page.Items[i].ManagedFields = nil
			if u, ok := k.kind.admitted(&page.Items[i], k.o.KeepManager); ok {
				items = append(items, u)
			}
		}
	}
	if !k.store.arrivedPage(items) {
		return nil, errTooLarge
	}
	return page, nil
}
