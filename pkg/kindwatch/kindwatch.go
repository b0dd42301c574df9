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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// healthyAfter is how long a watch must last to reset the back-off.
const healthyAfter = 2 * time.Minute

// pokesAtOnce is how many pokes in a row are obeyed at once.
const pokesAtOnce = 5

// maxResumeBackoff bounds the back-off of a watch that resumes: it costs its server little, and what is known grows
// old.
const maxResumeBackoff = 30 * time.Second

// errRelist ends an attempt in order to list everything again.
var errRelist = errors.New("the kind is listed again")

// kindWatch lists and watches one kind: its retry state, and its store.
type kindWatch struct {
	kind  Kind
	o     *Options
	store *store
	woken chan struct{}

	// used is the total of all kinds of the Watcher.
	used *usage

	// settled is closed, by settle, when the kind first leaves StateSyncing or is stopped.
	settled chan struct{}
	settle  func()

	// telling is held while an event is reported, so that turning stale is reported in order. It is taken before mu.
	telling sync.Mutex

	// timing tracks the timer goroutines of staleness.
	timing sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelFunc

	// blind is closed when the kind is listed or watched again, and nil while it is. ended is set when staleness is no
	// longer tracked.
	blind chan struct{}
	ended bool

	// at is where the next attempt begins. It is empty during an attempt.
	at position

	// abort ends the current attempt, and leave releases its place to list; nil once its list has released it.
	abort context.CancelCauseFunc
	leave func()
	// broken means that the handler panicked during the current attempt, of which nothing more is reported.
	broken bool

	stopped bool
	state   State
	message string
	trouble trouble

	// begun and listed are the generations of Reduce when the current or last list began, and when the last complete list
	// began.
	begun, listed uint64

	// invalid means that the kind cannot exist.
	invalid bool
}

func newKindWatch(kind Kind, o *Options, used *usage) *kindWatch {
	k := &kindWatch{
		kind: kind, o: o, woken: make(chan struct{}, 1), settled: make(chan struct{}), state: StateSyncing, used: used,
	}
	k.settle = sync.OnceFunc(func() { close(k.settled) })
	k.store = newStore(kind, k.emit, k.synced)
	k.store.budget = allowance{
		perKind: o.PerKind, total: o.Total, listed: o.Listed, all: used, holder: o.Account.Holder(k.evict),
	}
	k.store.overflow = func(why error) { k.endAttempt(why) }
	if !kind.Shared {
		k.store.keepManager, k.store.reduce, k.store.keep = o.KeepManager, o.Reduce, o.Keep
	}
	if err := kind.Validate(); err != nil {
		// No server can serve it, so no request is sent.
		k.state, k.message, k.invalid = StateNotServed, err.Error(), true
		k.settle()
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
	k.settle()
	k.stopped = true
	if k.cancel != nil {
		k.cancel()
	}
	k.store.close()
}

// endAttempt ends the current attempt with the given cause, so that the next one lists. It returns false if there is
// none.
func (k *kindWatch) endAttempt(why error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.abort == nil {
		k.at = position{}
		return false
	}
	k.abort(why)
	return true
}

// evict releases everything that is held, for others.
func (k *kindWatch) evict(why error) {
	if k.endAttempt(why) {
		return // The running loop drops everything once nothing more can arrive.
	}
	k.store.drop()    // Old objects, kept to compute the difference when the kind is served again.
	k.endAttempt(why) // One may have begun meanwhile.
	if s, _ := k.currentState(); s == StateSynced {
		// The cache is empty, and readers must receive an event when it is filled again.
		k.setState(StateTooLarge, k.tooLarge(why))
	}
}

// attempt lists and watches once, and returns why that ended. leave releases the place to list.
func (k *kindWatch) attempt(ctx context.Context, leave func()) error {
	defer leave()
	attempt, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	k.mu.Lock()
	k.abort, k.leave = abort, leave
	at := k.at
	if k.state == StateStale {
		at = position{} // A server that refuses to resume may still list.
	}
	k.at = position{}
	if k.o.Generation != nil && !at.resumable {
		k.begun = k.o.Generation()
	}
	k.mu.Unlock()
	err := k.o.Guard.Run("watching a kind", func() error { return k.listAndWatch(attempt, &at) })
	// From now on endAttempt returns false.
	k.mu.Lock()
	defer k.mu.Unlock()
	k.abort, k.broken = nil, false
	switch cause := context.Cause(attempt); {
	case panicked(err):
	case cause != nil:
		err = cause
	default:
		k.at = at
	}
	return err
}

// resumes reports whether the next attempt needs no list.
func (k *kindWatch) resumes() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at.resumable && k.state != StateStale
}

func (k *kindWatch) retry() {
	select {
	case k.woken <- struct{}{}:
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
	if changed && k.state == StateSyncing {
		k.settle()
	}
	k.state, k.message = s, message
	k.mu.Unlock()
	if changed {
		k.notify(Event{Type: StateChanged, Kind: k.kind, State: s})
	}
}

// synced is called by the store after a list has replaced its content and the events were emitted.
func (k *kindWatch) synced() {
	k.mu.Lock()
	leave := k.leave
	k.leave, k.trouble.listed = nil, k.o.Clock.Now()
	k.listed = k.begun
	broken := k.broken
	k.mu.Unlock()
	if leave != nil {
		leave()
	}
	if broken {
		return // It is listed again.
	}
	k.seen()
	k.setState(StateSynced, "")
}

func (k *kindWatch) emit(e Event) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.notify(e)
}

// notify is emit for callers that hold telling. Only it calls the handler. A panic of the handler ends the current
// attempt, and everything is listed again.
func (k *kindWatch) notify(e Event) {
	k.mu.Lock()
	silent := k.stopped || k.broken
	k.mu.Unlock()
	if silent {
		return
	}
	if err := k.o.Guard.Do("handling an event", func() { k.o.Handler(e) }); err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.broken = k.abort != nil; k.broken {
			k.abort(err)
		}
	}
}

// run lists and watches until ctx ends.
func (k *kindWatch) run(ctx context.Context) {
	// State reports failures; client-go would log some of them, too.
	ctx = klog.NewContext(ctx, logr.Discard())
	defer k.end()
	k.began()
	defer k.o.Progress.follow(k)()
	backoff := k.newBackoff()
	// A cluster controls how often a kind is poked. A few pokes are obeyed at once; then one per shortest back-off.
	pokes := rate.NewLimiter(rate.Every(k.o.MinBackoff), pokesAtOnce)

	for {
		leave := func() {}
		if !k.resumes() {
			if leave = acquireList(ctx, k.o.Lists, k.party(), k.o.Clock); leave == nil {
				return
			}
		}
		started := k.o.Clock.Now()
		err := k.attempt(ctx, leave)
		if ctx.Err() != nil {
			return
		}
		k.unseen(ctx)
		if errors.Is(err, errRelist) {
			k.listsAgain()
			continue
		}
		k.failed(err)

		// Reporting a failure can panic, too; then it is not reported further.
		_ = k.o.Guard.Do("parking a kind", func() { k.park(err) })
		if k.o.Clock.Since(started) > healthyAfter {
			backoff = k.newBackoff()
		}

		if k.pause(ctx, k.delay(backoff.Step())) && pokes.AllowN(k.o.Clock.Now(), 1) {
			backoff = k.newBackoff()
		} else if rest := k.o.MinBackoff - k.o.Clock.Since(started); rest > 0 {
			k.rest(ctx, rest)
		}
	}
}

// delay returns the back-off before the next attempt.
func (k *kindWatch) delay(backoff time.Duration) time.Duration {
	if k.resumes() {
		return min(backoff, maxResumeBackoff)
	}
	return backoff
}

// party identifies the cluster that lists, or a Watcher without an account.
func (k *kindWatch) party() any {
	if k.o.Account != nil {
		return k.o.Account
	}
	return k.used
}

// pause waits for the next attempt, and returns whether it was poked meanwhile.
func (k *kindWatch) pause(ctx context.Context, d time.Duration) (poked bool) {
	timer := k.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-k.woken:
		return true
	case <-timer.C():
	}
	return false
}

// rest enforces the shortest back-off for kinds that are poked too often.
func (k *kindWatch) rest(ctx context.Context, d time.Duration) {
	timer := k.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// isTooLarge reports whether an attempt ended because a limit was exceeded.
func isTooLarge(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) || errors.Is(err, limits.ErrRefused) ||
		errors.Is(err, limits.ErrShare) || errors.Is(err, limits.ErrBusy)
}

// park records in the state of the kind why an attempt ended.
func (k *kindWatch) park(err error) {
	switch {
	case isTooLarge(err):
		k.store.drop()
		k.setState(StateTooLarge, k.tooLarge(err))
	case panicked(err):
		k.store.drop()
		k.setState(StateSyncing, "cannot handle "+k.kind.String()+": handling its objects failed unexpectedly, see the log")
	case apierror.IsNotServed(err):
		k.store.unsync()
		k.setState(StateNotServed, "the cluster does not serve "+k.kind.String())
	case apierrors.IsForbidden(err):
		k.store.unsync()
		k.setState(StateForbidden, "the cluster does not let Masthead list and watch "+k.kind.String())
	case !k.store.isSynced():
		k.setState(k.parkedState(), "cannot list and watch "+k.kind.String()+": "+condition.Text(err.Error(), maxText))
	}
}

// panicked reports whether an attempt panicked.
func panicked(err error) bool {
	var p *guard.Panic
	return errors.As(err, &p)
}

func (k *kindWatch) tooLarge(err error) string {
	var (
		refused *limits.Error
		share   *limits.ShareError
	)
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("cannot list and watch %s: %s", k.kind, refused)
	case errors.As(err, &share):
		return fmt.Sprintf("cannot keep %s: %s", k.kind, share)
	case errors.Is(err, limits.ErrBusy):
		return fmt.Sprintf("cannot keep %s: %s", k.kind, limits.ErrBusy)
	case errors.Is(err, errTooMany):
		return fmt.Sprintf("the cluster has more of %s than Masthead reads: %d objects", k.kind, k.o.Listed)
	}
	return fmt.Sprintf("the cluster has more of %s than Masthead keeps: %d objects or %d MiB of a kind, %d objects or %d MiB of all kinds",
		k.kind, k.o.PerKind.Objects, k.o.PerKind.Bytes>>20, k.o.Total.Objects, k.o.Total.Bytes>>20)
}

// parkedState keeps the state of a parked kind when an attempt fails for a transient reason.
func (k *kindWatch) parkedState() State {
	if s, _ := k.currentState(); s != StateSynced {
		return s
	}
	return StateSyncing
}

func (k *kindWatch) newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: k.o.MinBackoff, Cap: k.o.MaxBackoff, Factor: 2, Jitter: 1, Steps: 30}
}
