// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// result is what one run showed.
type result struct {
	scenario

	// problem is the reason why the run did not finish.
	problem string

	// rest is what the program uses after the claims of the warm-up, before the first claim that is measured. settled is
	// what it uses when it has then been idle for a while; zero if that is not measured.
	rest, settled process.Usage

	// creating is how long it took to create all claims. up is the time from the first creation until the last claim was
	// in the hub, and back the time from the first status written in the hub until the last status was in its workload
	// cluster.
	creating, up, back time.Duration

	// onWorkloads and onHub are the program's requests from the first claim until it was idle again.
	onWorkloads, onHub auditlog.Counts

	// processor is the CPU time that the program used for that, and peak the most memory that it had until then.
	processor time.Duration
	peak      int64

	paced *pacedResult
	idle  *idleResult
}

// pacedResult is the result with claims at a steady rate.
type pacedResult struct {
	objects            int
	up, back           []time.Duration
	onWorkloads, onHub auditlog.Counts

	// processor is the CPU time that the program used meanwhile, and peak the most memory that it had until then.
	processor time.Duration
	peak      int64
}

// idleResult is what the program requested while nothing happened.
type idleResult struct {
	duration time.Duration
	requests auditlog.Counts

	// inUse is how much of its memory the program uses after that; zero if it does not publish that.
	inUse process.InUse
}

// warmUpObjects is how many claims are written before anything is measured.
const warmUpObjects = 1000

// run measures every scenario, on a fleet that grows.
func run(ctx context.Context, s settings) (results []result, err error) {
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s  %s\n", time.Since(begun).Round(time.Second), fmt.Sprintf(format, args...))
	}
	w, err := newWorld(ctx, s, s.clusters[0])
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	for _, clusters := range s.clusters {
		if err := w.grow(ctx, clusters); err != nil {
			return results, err
		}
		// API servers that have just started are slower for the first thousand writes, which would count against the program
		// that is measured first.
		if _, err := w.ceiling(ctx, scenario{subject: none, clusters: clusters, objects: warmUpObjects}); err != nil {
			return results, fmt.Errorf("cannot warm up the API servers: %w", err)
		}
		for _, sc := range s.inTurn(clusters) {
			r, err := w.measure(ctx, sc)
			if err != nil {
				r.problem = err.Error()
			}
			say("%s", r)
			if s.verbose {
				say("requests to workload clusters: %s", r.onWorkloads)
				say("requests to the hub: %s", r.onHub)
			}
			results = append(results, r)
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
		}
	}
	return results, nil
}

// String is the result for the user who waits.
func (r result) String() string {
	text := fmt.Sprintf("%s, %d clusters, %d claims", r.subject, r.clusters, r.objects)
	if r.problem != "" {
		return text + ": " + r.problem
	}
	text += fmt.Sprintf(": %.0f/s up, %.0f/s back, %s processor, %s peak",
		report.PerSecond(r.objects, r.up), report.PerSecond(r.objects, r.back), r.processor, report.Mebibytes(r.peak))
	if r.paced != nil {
		text += fmt.Sprintf("; at a pace: p99 %s up, %s back, %s processor, %s peak",
			report.Percentile(r.paced.up, 99), report.Percentile(r.paced.back, 99), r.paced.processor, report.Mebibytes(r.paced.peak))
	}
	return text
}

// measure does one run. With an error it returns what was measured until then.
func (w *world) measure(ctx context.Context, sc scenario) (r result, err error) {
	if sc.subject == none {
		return w.ceiling(ctx, sc)
	}
	r.scenario = sc
	s := w.subjects[sc.subject]
	w.kinds++
	k := claims.KindOfRun(w.kinds)
	defer func() { err = errors.Join(err, s.stop(context.WithoutCancel(ctx), k)) }()
	if err := s.start(ctx, k); err != nil {
		return r, err
	}
	if err := w.warmUp(ctx, k); err != nil {
		return r, fmt.Errorf("it does not begin to carry claims: %w", err)
	}
	if err := w.burst(ctx, s, k, &r); err != nil || !sc.withLatency {
		return r, err
	}
	if w.settings.paced > 0 {
		if r.paced, err = w.pace(ctx, s, k); err != nil {
			return r, err
		}
	}
	if w.settings.idle > 0 {
		r.idle, err = w.rest(ctx, s)
	}
	return r, err
}

// warmUp carries one claim of each workload cluster to the hub and its status back: then everything that is needed
// runs.
func (w *world) warmUp(ctx context.Context, k claims.Kind) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := claims.NewLoad(ctx, k, w.hub, w.workloads)
	if err != nil {
		return err
	}
	n := len(w.workloads)
	if err := l.CreateAll(ctx, "warm", n); err != nil {
		return err
	}
	if err := l.Wait(ctx, func(arrived, _ int) bool { return arrived >= n }); err != nil {
		return err
	}
	if err := l.WriteAll(ctx); err != nil {
		return err
	}
	return l.Wait(ctx, func(_, returned int) bool { return returned >= n })
}

// burst creates all claims as fast as possible and, when they are in the hub, writes their statuses as fast as
// possible.
func (w *world) burst(ctx context.Context, s subject, k claims.Kind, r *result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := claims.NewLoad(ctx, k, w.hub, w.workloads)
	if err != nil {
		return err
	}
	t, err := w.tail(s.user())
	if err != nil {
		return err
	}
	if err := t.Settle(ctx); err != nil {
		return err
	}
	if t, err = w.tail(s.user()); err != nil {
		return err
	}
	if r.rest, err = process.ReadUsage(s.pids()...); err != nil {
		return err
	}
	if r.withLatency && w.settings.settle > 0 {
		if err := w.settle(ctx, s, r); err != nil {
			return err
		}
		if t, err = w.tail(s.user()); err != nil {
			return err
		}
	}

	begun := time.Now()
	if err := l.CreateAll(ctx, "burst", r.objects); err != nil {
		return err
	}
	r.creating = time.Since(begun)
	if err := l.Wait(ctx, func(arrived, _ int) bool { return arrived >= r.objects }); err != nil {
		return err
	}
	if err := l.WriteAll(ctx); err != nil {
		return err
	}
	if err := l.Wait(ctx, func(_, returned int) bool { return returned >= r.objects }); err != nil {
		return err
	}
	samples := l.Samples()
	r.up, r.back = claims.Span(samples, claims.Created, claims.Arrived), claims.Span(samples, claims.Written, claims.Returned)

	if err := t.Settle(ctx); err != nil {
		return err
	}
	r.onHub, r.onWorkloads = t.AtHub, t.AtWorkloads
	u, err := process.ReadUsage(s.pids()...)
	r.processor, r.peak = u.Processor-max(r.rest.Processor, r.settled.Processor), u.Peak
	return err
}

// settle leaves the program alone until its garbage has been collected: a program that is written in Go does that every
// two minutes, if it produces no more garbage.
func (w *world) settle(ctx context.Context, s subject, r *result) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.settings.settle):
	}
	var err error
	r.settled, err = process.ReadUsage(s.pids()...)
	return err
}

// pace measures latencies.
func (w *world) pace(ctx context.Context, s subject, k claims.Kind) (*pacedResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := claims.NewLoad(ctx, k, w.hub, w.workloads)
	if err != nil {
		return nil, err
	}
	t, err := w.tail(s.user())
	if err != nil {
		return nil, err
	}
	before, err := process.ReadUsage(s.pids()...)
	if err != nil {
		return nil, err
	}
	if err := l.Pace(ctx, "pace", w.settings.rate, w.settings.paced); err != nil {
		return nil, fmt.Errorf("at %d claims a second: %w", w.settings.rate, err)
	}
	if err := t.Settle(ctx); err != nil {
		return nil, err
	}
	after, err := process.ReadUsage(s.pids()...)
	if err != nil {
		return nil, err
	}
	samples := l.Samples()
	return &pacedResult{
		objects: len(samples),
		up:      claims.Durations(samples, claims.Created, claims.Arrived), back: claims.Durations(samples, claims.Written, claims.Returned),
		onWorkloads: t.AtWorkloads, onHub: t.AtHub,
		processor: after.Processor - before.Processor, peak: after.Peak,
	}, nil
}

// rest counts the requests that the program sends while nothing happens.
func (w *world) rest(ctx context.Context, s subject) (*idleResult, error) {
	t, err := w.tail(s.user())
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(w.settings.idle):
	}
	if _, err := t.Read(); err != nil {
		return nil, err
	}
	t.AtHub.Add(t.AtWorkloads)
	r := &idleResult{duration: w.settings.idle, requests: t.AtHub}
	if read := s.metrics(); read != nil {
		if r.inUse, err = process.ReadInUse(ctx, read); err != nil {
			return nil, err
		}
	}
	return r, nil
}
