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
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// result is what one run showed.
type result struct {
	scenario

	// problem is the reason why the run did not finish.
	problem string

	// complete is how many Applications had a status when the last of them had one, or at the timeout, and first is how
	// long that took since the program was started. processor is the CPU time that the program used for that, and requests
	// are those that it sent to the workload cluster.
	complete  int
	first     time.Duration
	processor time.Duration
	requests  auditlog.Counts

	// latencies are those of changes.
	latencies []time.Duration

	idle *idleResult

	// resident is the memory that the program occupies at the end, and heap the part of it that is in use.
	resident, heap int64
}

// idleResult is what the program used while nothing happened.
type idleResult struct {
	duration, processor time.Duration

	onWorkload, onHub auditlog.Counts
}

// run measures every scenario, and runs each program in special cases.
func run(ctx context.Context, s settings) (results []result, answers []answer, err error) {
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s  %s\n", time.Since(begun).Round(time.Second), fmt.Sprintf(format, args...))
	}
	w, err := newWorld(ctx, s)
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return nil, nil, err
	}
	if s.cases {
		if answers, err = w.ask(ctx, say); err != nil {
			return nil, answers, err
		}
	}
	for _, sc := range s.scenarios() {
		if err := w.weighDown(ctx, sc.ballast); err != nil {
			return results, answers, fmt.Errorf("cannot create unrelated objects: %w", err)
		}
		r, err := w.measure(ctx, sc)
		if err != nil {
			r.problem = err.Error()
		}
		say("%s", r)
		if s.verbose {
			say("requests for the first statuses: %s", r.requests)
			if r.idle != nil {
				say("requests at idle: %s; to the hub: %s", r.idle.onWorkload, r.idle.onHub)
			}
		}
		results = append(results, r)
		if ctx.Err() != nil {
			return results, answers, ctx.Err()
		}
	}
	return results, answers, nil
}

// String is the result for the user who waits.
func (r result) String() string {
	text := fmt.Sprintf("%s, %d Applications, %d other objects", r.name(), r.apps, r.ballast)
	if r.first > 0 {
		text += fmt.Sprintf(": first status of %d in %s", r.complete, r.first.Round(time.Millisecond))
	}
	if n := len(r.latencies); n > 0 {
		text += fmt.Sprintf(", p50 %s and p99 %s of %d changes", report.Percentile(r.latencies, 50), report.Percentile(r.latencies, 99), n)
	}
	if r.heap > 0 {
		text += fmt.Sprintf(", %s resident, %s in use", report.Mebibytes(r.resident), report.Mebibytes(r.heap))
	}
	if r.problem != "" {
		text += ": " + r.problem
	}
	return text
}

// measure does one run. With an error it returns what was measured until then.
func (w *world) measure(ctx context.Context, sc scenario) (r result, err error) {
	r.scenario = sc
	s, err := w.prepare(ctx, sc.subject)
	if err != nil {
		return r, err
	}
	apps, err := w.seed(ctx, s.kind(), sc.apps)
	defer func() {
		err = errors.Join(err, s.stop(), w.clear(context.WithoutCancel(ctx), s.kind(), apps))
	}()
	if err != nil {
		return r, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	t := newTracker()
	if err := s.kind().watch(watching, func(o state) { t.event(o, time.Now()) }, t.ended); err != nil {
		return r, err
	}
	program, err := w.first(ctx, s, t, &r)
	if err != nil {
		return r, err
	}
	if !sc.memoryOnly {
		if err := w.change(ctx, program, t, apps, &r); err != nil {
			return r, err
		}
	}
	if err := w.rest(ctx, s.user(), program, &r); err != nil {
		return r, err
	}
	return r, weigh(ctx, program, &r)
}

// first starts the program and waits until all Applications have a status.
func (w *world) first(ctx context.Context, s subject, t *tracker, r *result) (running, error) {
	tails, err := w.tails(s.user())
	if err != nil {
		return running{}, err
	}
	begun := time.Now()
	program, err := s.start(ctx, r.period)
	if err != nil {
		return program, err
	}
	err = t.wait(ctx, r.apps, w.settings.patience, program.exited)
	r.first, r.complete = time.Since(begun), t.count()
	u, usageErr := process.ReadUsage(program.pid)
	r.processor = u.Processor
	_, tailErr := tails.Read()
	r.requests = tails.AtWorkloads
	if err := errors.Join(err, usageErr, tailErr); err != nil {
		return program, err
	}
	return program, r.settle(ctx, tails)
}

// settle waits until the program has nothing to do any more. A program that checks everything in each period is never
// idle, and is not waited for.
func (s scenario) settle(ctx context.Context, tails *auditlog.Tails) error {
	if s.period > 0 {
		return nil
	}
	return tails.Settle(ctx)
}

// rest counts the requests that the program sends, and the CPU time that it uses, while nothing happens.
func (w *world) rest(ctx context.Context, user string, program running, r *result) error {
	d := r.idleFor(w.settings.idle)
	if d == 0 {
		return nil
	}
	tails, err := w.tails(user)
	if err != nil {
		return err
	}
	if err := r.settle(ctx, tails); err != nil {
		return err
	}
	if tails, err = w.tails(user); err != nil {
		return err
	}
	before, err := process.ReadUsage(program.pid)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-program.exited:
		return errors.New("the program has ended")
	case <-time.After(d):
	}
	after, err := process.ReadUsage(program.pid)
	if err != nil {
		return err
	}
	if _, err := tails.Read(); err != nil {
		return err
	}
	r.idle = &idleResult{duration: d, processor: after.Processor - before.Processor, onWorkload: tails.AtWorkloads, onHub: tails.AtHub}
	return nil
}

// weigh measures how much memory the program has at the end.
func weigh(ctx context.Context, program running, r *result) error {
	u, err := process.ReadUsage(program.pid)
	if err != nil {
		return err
	}
	r.resident = u.Resident
	used, err := process.ReadInUse(ctx, program.metrics)
	r.heap = used.Heap
	return err
}
