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
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/guard"
)

// healthyAfter is how long a watch must have lasted for the next failure to start with the shortest back-off again.
const healthyAfter = 2 * time.Minute

// pokesAtOnce is how often a kind is tried again at once because something about it has changed.
const pokesAtOnce = 5

// errRelist ends an attempt because everything shall be listed again.
var errRelist = errors.New("the kind is listed again")

// kindWatch is the reflector of one kind, what it needs to go on after errors, and the store that it fills.
type kindWatch struct {
	kind  Kind
	o     *Options
	store *store
	poked chan struct{}

	// used is what all kinds of the Watcher hold. It also says, at the gate, which Watcher the kind is of.
	used *usage

	// settled is closed when the kind leaves StateSyncing, to which it never returns, or is stopped.
	settled chan struct{}

	// telling is held while an event is reported, so that a kind that turns stale is reported in turn. It is taken before
	// mu.
	telling sync.Mutex

	// timing are the goroutines that measure time: how long nothing was seen, and how long the reflector backs off.
	timing sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelFunc

	// blind is closed when the objects can be seen again; nil if they can. ended is whether that does not matter any more.
	blind chan struct{}
	ended bool

	// abort ends the attempt that is under way, over is closed then, and leave is its place among the lists until it has
	// left.
	abort context.CancelCauseFunc
	over  <-chan struct{}
	leave func()

	stopped bool
	state   State
	message string
	trouble trouble

	// begun and listed are the generations of Reduce when the list under way, or the last one, began, and when the last
	// that became complete did.
	begun, listed uint64

	// invalid says that the kind cannot exist.
	invalid bool
}

func newKindWatch(kind Kind, o *Options, used *usage) *kindWatch {
	k := &kindWatch{
		kind: kind, o: o, poked: make(chan struct{}, 1), settled: make(chan struct{}), state: StateSyncing, used: used,
	}
	k.store = newStore(kind, k.emit, k.synced)
	k.store.budget = allowance{
		perKind: o.PerKind, total: o.Total, listed: o.Listed, all: used, holder: o.Account.Holder(k.yield),
	}
	k.store.overflow = func(why error) { k.endAttempt(why) }
	if !kind.Shared {
		k.store.keepManager, k.store.reduce = o.KeepManager, o.Reduce
	}
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

// endAttempt ends the attempt under way, for one of our own reasons. It is false if none is.
func (k *kindWatch) endAttempt(why error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.abort == nil {
		return false
	}
	k.abort(why)
	return true
}

// yield gives back everything that is held, since others need it.
func (k *kindWatch) yield(why error) {
	if k.endAttempt(why) {
		return // The loop that runs drops everything once nothing more can arrive.
	}
	k.store.drop() // Kept from before, to be compared with what is there when the kind is served again.
	if s, _ := k.currentState(); s == StateSynced {
		// Nothing is known any more, and whoever looks has to be woken when it is known again.
		k.setState(StateTooLarge, k.tooLarge(why))
	}
}

// attempt lists and watches once, and says why that ended. leave gives back the place among the lists.
func (k *kindWatch) attempt(ctx context.Context, reflector *cache.Reflector, leave func()) error {
	defer leave()
	attempt, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	k.mu.Lock()
	k.abort, k.over, k.leave = abort, attempt.Done(), leave
	if k.o.Generation != nil {
		k.begun = k.o.Generation()
	}
	k.mu.Unlock()
	err := k.o.Guard.Run("watching a kind", func() error { return reflector.ListAndWatchWithContext(attempt) })
	// Whoever ends an attempt from now on has ended none, and is told so.
	k.mu.Lock()
	k.abort = nil
	k.mu.Unlock()
	if panicked(err) {
		return err
	}
	if cause := context.Cause(attempt); ctx.Err() == nil && cause != nil {
		return cause
	}
	return err
}

func (k *kindWatch) retry() {
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
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	changed := k.state != s
	if changed && k.state == StateSyncing && !k.stopped {
		close(k.settled)
	}
	k.state, k.message = s, message
	k.mu.Unlock()
	if changed {
		k.tell(Event{Type: StateChanged, Kind: k.kind, State: s})
	}
}

// synced is called by the store after a list has replaced what it knew, and after the events of that.
func (k *kindWatch) synced() {
	k.mu.Lock()
	leave := k.leave
	k.leave, k.trouble.listed = nil, k.o.Clock.Now()
	k.listed = k.begun
	k.mu.Unlock()
	if leave != nil {
		leave()
	}
	k.seen()
	k.setState(StateSynced, "")
}

func (k *kindWatch) emit(e Event) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.tell(e)
}

// tell is emit for callers that hold telling.
func (k *kindWatch) tell(e Event) {
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
	defer k.end()
	k.began()
	defer k.o.Progress.follow(k)()
	backoff := k.newBackoff()
	reflector := k.newReflector()
	// A cluster decides how often something about a kind changes. A few pokes are obeyed at once; then one as often as the
	// shortest back-off lets.
	pokes := rate.NewLimiter(rate.Every(k.o.MinBackoff), pokesAtOnce)

	for {
		leave := k.o.Lists.enter(ctx, k.used, k.o.Clock)
		if leave == nil {
			return
		}
		started := k.o.Clock.Now()
		err := k.attempt(ctx, reflector, leave)
		if ctx.Err() != nil {
			return
		}
		k.unseen(ctx)
		if errors.Is(err, errRelist) {
			k.listsAgain()
			continue
		}
		k.failed(err)

		// What is told of a failure can panic, too, and is then told no further.
		anew := true
		_ = k.o.Guard.Do("parking a kind", func() { anew = k.park(err) })
		if anew {
			reflector = k.newReflector()
		}
		if k.o.Clock.Since(started) > healthyAfter {
			backoff = k.newBackoff()
		}

		if k.pause(ctx, backoff.Step()) && pokes.AllowN(k.o.Clock.Now(), 1) {
			backoff = k.newBackoff()
		} else if rest := k.o.MinBackoff - k.o.Clock.Since(started); rest > 0 {
			k.rest(ctx, rest)
		}
	}
}

// pause waits for the next attempt, and says whether it was poked meanwhile.
func (k *kindWatch) pause(ctx context.Context, d time.Duration) (poked bool) {
	timer := k.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-k.poked:
		return true
	case <-timer.C():
	}
	return false
}

// rest waits for whoever is poked too often.
func (k *kindWatch) rest(ctx context.Context, d time.Duration) {
	timer := k.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// isTooLarge is whether an attempt ended because more arrived than is read or kept.
func isTooLarge(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) || errors.Is(err, bounded.ErrRefused) ||
		errors.Is(err, budget.ErrShare) || errors.Is(err, budget.ErrBusy)
}

// park notes in the state of the kind why an attempt ended, and says whether the next one must not go on from what is
// known.
func (k *kindWatch) park(err error) (anew bool) {
	switch {
	case isTooLarge(err):
		k.store.drop()
		k.setState(StateTooLarge, k.tooLarge(err))
		return true
	case panicked(err):
		k.store.drop()
		k.setState(StateSyncing, "cannot handle "+k.kind.String()+": handling its objects failed unexpectedly, see the log")
		return true
	case isNotServed(err):
		k.store.unsync()
		k.setState(StateNotServed, "the cluster does not serve "+k.kind.String())
		// A kind that comes back may come back with another history, where the resource version of the old one
		// means nothing.
		return true
	case apierrors.IsForbidden(err):
		k.store.unsync()
		k.setState(StateForbidden, "the cluster does not let Masthead list and watch "+k.kind.String())
	case err != nil && !k.store.isSynced():
		k.setState(k.parkedState(), "cannot list and watch "+k.kind.String()+": "+boundedText(err))
	}
	return false
}

// panicked is whether something panicked in an attempt.
func panicked(err error) bool {
	var p *guard.Panic
	return errors.As(err, &p)
}

func (k *kindWatch) tooLarge(err error) string {
	var (
		refused *bounded.Error
		share   *budget.ShareError
	)
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("cannot list and watch %s: %s", k.kind, refused)
	case errors.As(err, &share):
		return fmt.Sprintf("cannot keep %s: %s", k.kind, share)
	case errors.Is(err, budget.ErrBusy):
		return fmt.Sprintf("cannot keep %s: %s", k.kind, budget.ErrBusy)
	case errors.Is(err, errTooMany):
		return fmt.Sprintf("the cluster has more of %s than Masthead looks at: %d objects", k.kind, k.o.Listed)
	}
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
