// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// steadyAfter is how long a watch must last after its list for earlier failures to be over.
const steadyAfter = 30 * time.Second

// A Cause says why a kind is not synced, in a form that can be the reason of a condition. It is one of a fixed set and
// contains no text from a server.
type Cause string

const (
	// CauseListUnfinished means that the list has neither completed nor failed.
	CauseListUnfinished Cause = "ListUnfinished"

	// CauseListTimedOut means that the cluster did not answer the list in time.
	CauseListTimedOut Cause = "ListTimedOut"

	// CauseListTruncated means that the response to the list was incomplete or missing.
	CauseListTruncated Cause = "ListTruncated"

	// CauseListRejected means that the cluster answered the list with an error.
	CauseListRejected Cause = "ListRejected"

	// CauseListMalformed means that the response to the list is not a list of objects.
	CauseListMalformed Cause = "ListMalformed"

	// CauseWatchFailing means that lists succeed, and that the watch ends soon after each.
	CauseWatchFailing Cause = "WatchFailing"

	// CauseListFailed means that the list failed in another way.
	CauseListFailed Cause = "ListFailed"

	// CauseStale means that the kind is in StateStale.
	CauseStale Cause = "Stale"

	// CauseTooLarge means that the kind exceeds a limit.
	CauseTooLarge Cause = "TooLarge"

	// CauseAnswerRefused means that responses were refused before they were decoded.
	CauseAnswerRefused Cause = "AnswerRefused"

	// CauseHandlingFailed means that the objects could not be handled; the log has details.
	CauseHandlingFailed Cause = "HandlingFailed"
)

// Unsynced is a kind that is not synced, or does not stay so.
type Unsynced struct {
	// Kind is the name of the kind's resource and group, for example "mysqlinstances.database.acmeco.org".
	Kind string

	// Cause is the first cause, so that it does not change with every attempt.
	Cause Cause
}

// Progress reports which kinds are not synced, of all Watchers and Shareds that have it in their Options. Kinds that
// are not served or forbidden are not included: these are separate states, and the controller that needs the kind
// reports them. The zero value is ready to use, and a nil Progress records nothing.
type Progress struct {
	mu    sync.Mutex
	kinds map[*kindWatch]struct{}
}

// follow tracks a kind until the returned function is called.
func (p *Progress) follow(k *kindWatch) (end func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kinds == nil {
		p.kinds = map[*kindWatch]struct{}{}
	}
	p.kinds[k] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.kinds, k)
	}
}

// Unsynced returns the kinds that have not been synced, or whose lists or watches have kept failing, for at least the
// given time, sorted and without duplicates.
func (p *Progress) Unsynced(forAtLeast time.Duration) []Unsynced {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Unsynced
	for k := range p.kinds {
		if cause, since := k.unsynced(); cause != "" && k.o.Clock.Since(since) >= forAtLeast {
			all = append(all, Unsynced{Kind: k.kind.GroupResource().String(), Cause: cause})
		}
	}
	slices.SortFunc(all, func(a, b Unsynced) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Cause, b.Cause)) })
	return slices.CompactFunc(all, func(a, b Unsynced) bool { return a.Kind == b.Kind })
}

// trouble records the failures of a kind. The mutex of the kind guards it.
type trouble struct {
	// began is when the kind was first requested.
	began time.Time

	// failing is the time of the first failure since the last steady watch, zero if there is none. cause is its cause, or
	// that of the last failure since that exceeded a limit.
	failing time.Time
	cause   Cause

	// listed is when the list of the current attempt arrived, or its watch was resumed; zero before.
	listed time.Time
}

// steady reports whether earlier failures are over.
func (t *trouble) steady(now time.Time) bool {
	return !t.listed.IsZero() && now.Sub(t.listed) >= steadyAfter
}

// failed notes how an attempt ended.
func (t *trouble) failed(err error, now time.Time) {
	if t.steady(now) {
		t.failing = time.Time{}
	}
	cause := classifyCause(err, !t.listed.IsZero())
	if t.failing.IsZero() {
		t.failing, t.cause = now, cause
	}
	if isTooLarge(err) {
		t.cause = cause // It is TooLarge after each list, not while the next one arrives.
	}
	t.listed = time.Time{}
}

// began records that the kind is requested.
func (k *kindWatch) began() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble.began = k.o.Clock.Now()
}

// listsAgain records that an attempt was ended to list the kind again, which is no failure.
func (k *kindWatch) listsAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trouble.steady(k.o.Clock.Now()) {
		k.trouble.failing = time.Time{}
	}
	k.trouble.listed = time.Time{}
}

// failed notes how an attempt ended.
func (k *kindWatch) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble.failed(err, k.o.Clock.Now())
}

// unsynced returns why the kind is not synced and since when, or no cause.
func (k *kindWatch) unsynced() (Cause, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := &k.trouble
	switch k.state { //nolint:exhaustive // A kind that is synced is not in trouble.
	case StateUnwatched, StateNotServed, StateForbidden:
		return "", time.Time{}
	case StateStale:
		return CauseStale, t.began
	case StateSyncing, StateTooLarge:
		if t.failing.IsZero() {
			return CauseListUnfinished, t.began
		}
		return t.cause, t.failing
	}
	if t.failing.IsZero() || t.steady(k.o.Clock.Now()) {
		return "", time.Time{}
	}
	return t.cause, t.failing
}

// classifyCause returns the cause of a failed attempt.
func classifyCause(err error, listed bool) Cause {
	var (
		syntax  *json.SyntaxError
		types   *json.UnmarshalTypeError
		status  apierrors.APIStatus
		network net.Error
	)
	switch {
	case errors.Is(err, limits.ErrRefused):
		return CauseAnswerRefused
	case isTooLarge(err):
		return CauseTooLarge
	case panicked(err):
		return CauseHandlingFailed
	case listed:
		return CauseWatchFailing
	case errors.As(err, &syntax), errors.As(err, &types):
		return CauseListMalformed
	case errors.As(err, &status):
		return CauseListRejected
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return CauseListTimedOut
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network != nil:
		return CauseListTruncated
	}
	return CauseListFailed
}
