// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"sync"
	"time"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

// object is the part of an object that the benchmark reads.
type object struct {
	apiserver.Meta

	Status struct {
		Address string `json:"address"`
	} `json:"status"`
}

// Sample is what happened to one claim, and when. The times are taken by the benchmark: the moment before a request was
// sent, and the moment in which a watch returned the result.
type Sample struct {
	workload  *apiserver.Client
	namespace string // in the hub

	created, arrived, written, returned time.Time
}

// tracker follows claims on their way. The events of watches are its only source.
type tracker struct {
	mu       sync.Mutex
	samples  map[string]*Sample
	arrived  int
	returned int

	// changed has an element when one of the numbers has changed.
	changed chan struct{}

	// onArrival, if set, is called once for each claim that arrives, and must not block.
	onArrival func(name, namespace string)
}

func newTracker() *tracker {
	return &tracker{samples: map[string]*Sample{}, changed: make(chan struct{}, 1)}
}

// create notes that a claim is about to be created.
func (t *tracker) create(name string, workload *apiserver.Client, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples[name] = &Sample{workload: workload, created: now}
}

// write notes that a claim's status is about to be written in the hub.
func (t *tracker) write(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples[name].written = now
}

// inHub handles an event of the hub.
func (t *tracker) inHub(o object, now time.Time) {
	t.mu.Lock()
	s := t.samples[o.Metadata.Name]
	if s == nil || !s.arrived.IsZero() {
		t.mu.Unlock()
		return
	}
	s.arrived, s.namespace = now, o.Metadata.Namespace
	t.arrived++
	call := t.onArrival
	t.mu.Unlock()
	t.tell()
	if call != nil {
		call(o.Metadata.Name, o.Metadata.Namespace)
	}
}

// inWorkload handles an event of a workload cluster.
func (t *tracker) inWorkload(o object, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.samples[o.Metadata.Name]
	if s == nil || o.Status.Address == "" || !s.returned.IsZero() {
		return
	}
	s.returned = now
	t.returned++
	t.tell()
}

func (t *tracker) tell() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *tracker) counts() (arrived, returned int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arrived, t.returned
}

// each returns all samples by name. They do not change any more once all claims have returned.
func (t *tracker) each() map[string]Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]Sample, len(t.samples))
	for name, s := range t.samples {
		out[name] = *s
	}
	return out
}

// Span is the time from the first of one kind of moment to the last of another.
func Span(samples map[string]Sample, from, to func(Sample) time.Time) time.Duration {
	var first, last time.Time
	for _, s := range samples {
		if f := from(s); first.IsZero() || f.Before(first) {
			first = f
		}
		if l := to(s); l.After(last) {
			last = l
		}
	}
	return last.Sub(first)
}

// Created is a moment of a Sample.
func Created(s Sample) time.Time { return s.created }

// Arrived is a moment of a Sample.
func Arrived(s Sample) time.Time { return s.arrived }

// Written is a moment of a Sample.
func Written(s Sample) time.Time { return s.written }

// Returned is a moment of a Sample.
func Returned(s Sample) time.Time { return s.returned }

// Durations are the times between two moments of each Sample.
func Durations(samples map[string]Sample, from, to func(Sample) time.Time) []time.Duration {
	out := make([]time.Duration, 0, len(samples))
	for _, s := range samples {
		out = append(out, to(s).Sub(from(s)))
	}
	return out
}
