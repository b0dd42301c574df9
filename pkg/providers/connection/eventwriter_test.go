// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// eventLog is a cluster that logs events, and answers them as answer does.
type eventLog struct {
	*eventRecorder
	answer func(ctx context.Context) error

	mu     sync.Mutex
	writes []string
}

// advance waits for a time of the test's bubble.
var advance = time.Sleep //nolint:forbidigo // In a bubble, it takes no time.

// newEventLog returns the events of a connection that ends with ctx.
func newEventLog(ctx context.Context) *eventLog {
	l := &eventLog{answer: func(context.Context) error { return nil }}
	dropped := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropped_total", Help: "Events that are not written."})
	w := newEventWriter(ctx, nil, nil, dropped, logr.Discard())
	w.write = func(ctx context.Context, e *eventsv1.Event, exists bool) error {
		line := e.Regarding.Name + " " + e.Note
		if e.Series != nil {
			line += fmt.Sprintf(" x%d", e.Series.Count)
		}
		if exists {
			line = "patch " + line
		}
		l.mu.Lock()
		l.writes = append(l.writes, line)
		l.mu.Unlock()
		return l.answer(ctx)
	}
	l.eventRecorder = &eventRecorder{writer: w, scheme: scheme.Scheme, controller: "test", instance: "test"}
	return l
}

func (l *eventLog) emit(name, note string) {
	l.Eventf(&corev1.ObjectReference{Kind: "ServiceAccount", Name: name}, nil, corev1.EventTypeNormal, "Reason", "Action", "%s", note)
}

// list returns what was written since the last call.
func (l *eventLog) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.writes
	l.writes = nil
	return out
}

// kept returns the bytes that wait, the series, and the goroutines.
func (l *eventLog) kept() (size, series, senders int) {
	w := l.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size, len(w.series), w.senders
}

// TestEventsOfAStuckClusterAreBounded has a cluster that answers no event, and another one.
func TestEventsOfAStuckClusterAreBounded(t *testing.T) {
	const events = 5000
	synctest.Test(t, func(t *testing.T) {
		ctx, disconnect := context.WithCancel(t.Context())
		stuck, other := newEventLog(ctx), newEventLog(ctx)
		stuck.answer = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		for i := range events {
			stuck.emit(fmt.Sprintf("object-%d", i), strings.Repeat("x", 200))
		}
		synctest.Wait()
		size, kept, senders := stuck.kept()
		if size > maxWaiting || kept > maxSeries || senders != eventSenders {
			t.Errorf("want bounds for a stuck cluster, got %d bytes, %d series, %d goroutines", size, kept, senders)
		}
		if dropped := int(testutil.ToFloat64(stuck.writer.dropped)); dropped != events-kept || kept < 2*eventSenders {
			t.Errorf("want what is not kept to be counted: %d kept, %d dropped", kept, dropped)
		}
		other.emit("a", "note")
		synctest.Wait()
		if got := other.list(); len(got) != 1 {
			t.Errorf("want another cluster's event not to wait, got %v", got)
		}
		stuck.emit("object-0", "again") // Counted: it needs no room.

		disconnect()
		synctest.Wait() // The bubble ends only without goroutines.
		stuck.list()
		stuck.emit("late", "note")
		synctest.Wait()
		if _, _, senders := stuck.kept(); len(stuck.list()) > 0 || senders > 0 {
			t.Errorf("want nothing to be written to a closed connection, by %d goroutines", senders)
		}
	})
}

// TestManyEventsAreAllWritten has a cluster that answers within a moment, and objects with events of their own.
func TestManyEventsAreAllWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEventLog(t.Context())
		l.answer = func(context.Context) error { advance(20 * time.Millisecond); return nil }
		const events = 2000
		for i := range events {
			l.emit(fmt.Sprintf("object-%d", i), "note")
			advance(3 * time.Millisecond)
		}
		advance(time.Second)
		if got := len(l.list()); got != events {
			t.Errorf("want %d events, got %d", events, got)
		}
		if size, series, senders := l.kept(); size != 0 || senders != 0 || series > maxSeries {
			t.Errorf("want nothing to be kept but %d series, got %d of them, %d bytes, %d goroutines", maxSeries, series, size, senders)
		}
	})
}

// TestRepeatedEventsAreCounted compares what is written after each step.
func TestRepeatedEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEventLog(t.Context())
		for _, step := range []struct {
			reason       string
			after        time.Duration
			times        int
			object, note string
			want         []string
		}{
			{"The first is an event.", 0, 1, "a", "one", []string{"a one"}},
			{"The second begins a series, also with another note.", time.Second, 1, "a", "two", []string{"patch a two x2"}},
			{"The third is only counted.", time.Second, 1, "a", "one", nil},
			{"The number has doubled.", time.Second, 1, "a", "one", []string{"patch a one x4"}},
			{"Many are written a few times.", time.Second, 97, "a", "one", []string{
				"patch a one x8", "patch a one x16", "patch a one x32", "patch a one x64",
			}},
			{"Another object has its own.", 0, 1, "b", "one", []string{"b one"}},
			{"What is written is too old.", seriesEnd - time.Second, 1, "b", "one", []string{"patch b one x2"}},
			{"A series goes on if it is not interrupted for long.", 5 * time.Minute, 1, "b", "one", nil},
			{"Its number is written again.", 5 * time.Minute, 1, "b", "one", []string{"patch b one x4"}},
			{"It has ended.", seriesEnd, 1, "b", "one", []string{"b one"}},
			{"The other has ended, too.", 0, 1, "a", "one", []string{"a one"}},
		} {
			advance(step.after)
			for range step.times {
				l.emit(step.object, step.note)
				synctest.Wait()
			}
			if diff := cmp.Diff(step.want, l.list()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", step.reason, diff)
			}
		}
	})
}

func TestEventThatOccursAgainWhileItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEventLog(t.Context())
		l.answer = func(context.Context) error { advance(time.Second); return nil }
		l.emit("a", "one")
		synctest.Wait()
		l.emit("a", "one")
		advance(time.Minute)
		if diff := cmp.Diff([]string{"a one", "patch a one x2"}, l.list()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestEventsThatFail(t *testing.T) {
	unanswered := errors.New("connection refused")
	unavailable, unauthorized := apierrors.NewServiceUnavailable("no backend"), apierrors.NewUnauthorized("the token is replaced")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil)
	for name, tc := range map[string]struct {
		reason  string
		errs    []error // The last one repeats.
		writes  int
		dropped float64
	}{
		"Answered":      {"It is there.", []error{nil}, 1, 0},
		"Refused":       {"The answer would be the same.", []error{refused}, 1, 1},
		"Restarting":    {"A load balancer answers for an API server that restarts.", []error{unavailable, unauthorized, nil}, 3, 0},
		"LostForAWhile": {"A restart of an API server loses no event.", []error{unanswered, unanswered, nil}, 3, 0},
		"Lost":          {"As often as client-go.", []error{unanswered}, 12, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newEventLog(t.Context())
				n := 0
				l.answer = func(context.Context) error {
					n++
					return tc.errs[min(n, len(tc.errs))-1]
				}
				l.emit("a", "one")
				advance(time.Hour)
				if got := len(l.list()); got != tc.writes {
					t.Errorf("%s want %d requests, got %d", tc.reason, tc.writes, got)
				}
				if got := testutil.ToFloat64(l.writer.dropped); got != tc.dropped {
					t.Errorf("%s want %v to be counted, got %v", tc.reason, tc.dropped, got)
				}
				if size, _, senders := l.kept(); size != 0 || senders != 0 {
					t.Errorf("want nothing to be left, got %d bytes, %d goroutines", size, senders)
				}
			})
		})
	}
}
