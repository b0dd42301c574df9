// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

const (
	// maxWaiting bounds the events of a cluster that wait to be written, in bytes. One counts eventOverhead beside its
	// text.
	maxWaiting, eventOverhead = 128 << 10, 1 << 10
	// maxSeries is how many events of a cluster are remembered, to count those that occur again.
	maxSeries = 256
	// eventSenders is how many events are written to a cluster at once.
	eventSenders = 8
	// seriesEnd is the time after which an event that occurs again is not the same. As in client-go.
	seriesEnd = 6 * time.Minute
)

// eventTries is how often an event is sent that a cluster does not answer, as in client-go, and eventRetry the time
// between. It is short at first: after a reset, all senders wait.
const eventTries = 12

var eventRetry = wait.Backoff{Steps: eventTries, Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.25, Cap: 10 * time.Second}

// eventWriter writes the events of one connection. Events that occur again are counted in the series of the first, like
// client-go's. The number is written when it has doubled, or when one more occurs after six minutes, and not at the end
// of a series. client-go's broadcasters cost 173 KiB and nine goroutines for each cluster; one for all would mix up the
// series of clusters, and wait for the slowest.
//
// It has no goroutine while nothing waits. What exceeds the bounds is dropped.
type eventWriter struct {
	ctx     context.Context //nolint:containedctx // The life of the connection.
	write   func(ctx context.Context, e *eventsv1.Event, exists bool) error
	guard   *guard.Guard
	clock   clock.Clock
	dropped prometheus.Counter
	log     logr.Logger

	mu      sync.Mutex
	series  map[seriesID]*eventSeries
	waiting []waitingEvent
	size    int // Of events that wait or are being written.
	senders int
}

// newEventWriter returns the events of a connection that ends with ctx.
func newEventWriter(
	ctx context.Context, write func(context.Context, *eventsv1.Event, bool) error, g *guard.Guard, dropped prometheus.Counter, log logr.Logger,
) *eventWriter {
	return &eventWriter{
		ctx: ctx, write: write, guard: g, clock: clock.RealClock{}, dropped: dropped, log: log, series: map[seriesID]*eventSeries{},
	}
}

// seriesID is the hash of what all occurrences of an event have in common.
type seriesID [sha256.Size]byte

type eventSeries struct {
	name            string // The name of the Event.
	count, written  int32
	last, writtenAt time.Time
	busy            bool // It waits, or is being written.
}

// isDue reports whether the cluster's number is too old.
func (s *eventSeries) isDue(now time.Time) bool {
	return s.count >= 2*s.written || now.Sub(s.writtenAt) >= seriesEnd
}

type waitingEvent struct {
	*eventsv1.Event
	id     seriesID
	series *eventSeries
	size   int
}

// add writes an event later, and keeps e.
func (w *eventWriter) add(e *eventsv1.Event) {
	common, err := json.Marshal(&eventsv1.Event{
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Type: e.Type, Reason: e.Reason, Action: e.Action, Regarding: e.Regarding, Related: e.Related,
	})
	if err != nil {
		w.log.Error(err, "Cannot encode an event", "reason", e.Reason)
		return
	}
	id, size, now := seriesID(sha256.Sum256(common)), len(common)+len(e.Note)+eventOverhead, e.EventTime.Time

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	s, known := w.series[id]
	if known = known && (s.busy || now.Sub(s.last) < seriesEnd); !known {
		s = &eventSeries{name: e.Name}
	}
	s.count++
	s.last = now
	if !s.busy && s.isDue(now) {
		if w.size+size > maxWaiting {
			w.dropped.Inc()
			return
		}
		s.busy = true
		w.size += size
		e.Name = s.name
		w.waiting = append(w.waiting, waitingEvent{Event: e, id: id, series: s, size: size})
		if w.senders < eventSenders {
			w.senders++
			w.guard.Go("writing events", w.send)
		}
	}
	if !known {
		w.makeRoom(now)
		w.series[id] = s
	}
}

// makeRoom forgets series that have ended and, if there are too many, any. The caller holds mu.
func (w *eventWriter) makeRoom(now time.Time) {
	for id, s := range w.series {
		if !s.busy && (len(w.series) >= maxSeries || now.Sub(s.last) >= seriesEnd) {
			delete(w.series, id)
		}
	}
}

// send writes what waits, and ends with it or with the connection.
func (w *eventWriter) send() {
	for e, exists := w.next(); e.Event != nil; e, exists = w.next() {
		err := w.attempt(e.Event, exists)
		log := w.log.WithValues("kind", e.Regarding.Kind, "namespace", e.Regarding.Namespace, "name", e.Regarding.Name, "reason", e.Reason)
		switch {
		case err == nil:
			log.V(1).Info("Wrote an event", "type", e.Type, "note", e.Note)
		case w.ctx.Err() == nil:
			log.Error(multicluster.AsForeign(err), "Cannot write an event")
		}
		w.wrote(e, err)
	}
}

// attempt writes an event until the cluster takes or refuses it, or has not answered often enough.
func (w *eventWriter) attempt(e *eventsv1.Event, exists bool) error {
	retry := eventRetry
	for tries := 1; ; tries++ {
		err := w.write(w.ctx, e, exists)
		refused := apierror.IsAnswer(err) && !apierror.IsTransient(err) && !apierrors.IsUnauthorized(err)
		if err == nil || refused || tries == eventTries {
			return err
		}
		select {
		case <-w.ctx.Done():
			return err
		case <-w.clock.After(retry.Step()):
		}
	}
}

// next returns what to write next, and whether the Event exists. If it returns none, the sender must end.
func (w *eventWriter) next() (e waitingEvent, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 || w.ctx.Err() != nil {
		for _, lost := range w.waiting {
			w.dropped.Inc()
			w.size -= lost.size
		}
		w.waiting = nil
		w.senders--
		return waitingEvent{}, false
	}
	e, w.waiting = w.waiting[0], w.waiting[1:]
	if s := e.series; s.count > 1 {
		e.Series = &eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
	}
	return e, e.series.written > 0
}

// wrote records the outcome. An event that cannot be written is forgotten.
func (w *eventWriter) wrote(e waitingEvent, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := e.series
	if err != nil {
		w.dropped.Inc()
		delete(w.series, e.id)
	} else if s.written, s.writtenAt = 1, w.clock.Now(); e.Series != nil {
		s.written = e.Series.Count
	}
	if s.busy = err == nil && s.isDue(s.writtenAt); s.busy { // It occurred again meanwhile.
		w.waiting = append(w.waiting, e)
		return
	}
	w.size -= e.size
}
