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
	"github.com/masthead-dev/masthead/test/manyclusters"
)

// rest is what the manager takes at rest.
type rest struct {
	resident   int64
	inUse      process.InUse
	goroutines float64
	series     int
}

// result is what was measured with a number of clusters.
type result struct {
	clusters int
	// one, empty and full are with one cluster, with all, and with claims in all.
	one, empty, full rest

	connect, reconnect, further time.Duration
	// processor is what the manager took until all were connected.
	processor time.Duration
	idle      requests
	// crash are the requests from a crash until the manager was at rest again.
	crash requests
}

// run measures each number of clusters. With an error it returns what was measured until then.
func run(ctx context.Context, s settings) (results []result, err error) {
	for _, n := range s.clusters {
		r, err := measure(ctx, s, n)
		if r.clusters > 0 {
			results = append(results, r)
		}
		if err != nil {
			return results, fmt.Errorf("%d clusters: %w", n, err)
		}
	}
	return results, nil
}

func measure(ctx context.Context, s settings, n int) (r result, err error) {
	// One more is enrolled at the end.
	w, err := newWorld(ctx, s, n+1)
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return r, err
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%d clusters: "+format+"\n", append([]any{n}, args...)...)
	}
	if err := w.launch(); err != nil {
		return r, err
	}
	if err := w.installed(ctx); err != nil {
		return r, err
	}
	// While it installs, a manager watches more than one that finds everything.
	if err := errors.Join(w.manager.Stop(ctx), w.launch()); err != nil {
		return r, err
	}
	if _, err := w.settled(ctx); err != nil {
		return r, err
	}
	w.watches = w.proxy.Watches(manyclusters.Name(0))
	if r.one, err = w.measureRest(ctx); err != nil {
		return r, err
	}
	say("the first one has %d watches; %+v", w.watches, r.one)
	if err := w.manager.Stop(ctx); err != nil {
		return r, err
	}
	others := make([]int, 0, n)
	for i := 1; i < n; i++ {
		others = append(others, i)
	}
	if err := w.enrol(ctx, others...); err != nil {
		return r, err
	}
	say("connecting")
	if r.connect, err = w.start(ctx, n); err != nil {
		return r, err
	}
	r.clusters = n
	usage, err := process.ReadUsage(w.manager.PID())
	if err != nil {
		return r, err
	}
	r.processor = usage.Processor
	say("connected after %s", r.connect)
	before, err := w.settled(ctx)
	if err != nil {
		return r, err
	}
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(s.rest):
	}
	after, err := w.requests()
	if err != nil {
		return r, err
	}
	r.idle = after.since(before)
	if r.empty, err = w.measureRest(ctx); err != nil {
		return r, err
	}
	say("at rest %+v; requests: %s", r.empty, r.idle)
	if s.claims > 0 {
		if err := w.createClaims(ctx, n); err != nil {
			return r, err
		}
		if _, err := w.settled(ctx); err != nil {
			return r, err
		}
		if r.full, err = w.measureRest(ctx); err != nil {
			return r, err
		}
		say("with claims %+v", r.full)
	}
	if err := w.crash(ctx, n, &r); err != nil {
		return r, err
	}
	say("connected again after %s; requests: %s", r.reconnect, r.crash)
	begun := time.Now()
	if err := w.enrol(ctx, n); err != nil {
		return r, err
	}
	err = w.connected(ctx, n+1)
	r.further = time.Since(begun)
	return r, err
}

// installed waits until the first cluster has what the manager installs.
func (w *world) installed(ctx context.Context) error {
	for _, path := range []string{w.kind.Collection(""), "/apis/apps.masthead.dev/v1alpha1/applications"} {
		if err := w.other.WaitServed(ctx, path+"?limit=1"); err != nil {
			return err
		}
	}
	if err := w.other.WaitServed(ctx, w.kind.XRDPath()); err != nil {
		return err
	}
	_, err := w.settled(ctx)
	return err
}

// start starts the manager, and returns how long it takes until the first n clusters are connected.
func (w *world) start(ctx context.Context, n int) (time.Duration, error) {
	begun := time.Now()
	if err := w.launch(); err != nil {
		return 0, err
	}
	err := w.connected(ctx, n)
	return time.Since(begun), err
}

// crash kills the manager and starts it again.
func (w *world) crash(ctx context.Context, n int, r *result) error {
	if err := w.manager.Kill(); err != nil {
		return err
	}
	for i := range n {
		for w.proxy.Watches(manyclusters.Name(i)) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	before, err := w.requests()
	if err != nil {
		return err
	}
	if r.reconnect, err = w.start(ctx, n); err != nil {
		return err
	}
	after, err := w.settled(ctx)
	r.crash = after.since(before)
	return err
}

func (w *world) measureRest(ctx context.Context) (r rest, err error) {
	// Before the metrics are read, which takes memory.
	if r.resident, err = w.manager.ResidentBytes(); err != nil {
		return r, err
	}
	m, err := w.manager.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.goroutines = m.Value("go_goroutines")
	for _, family := range m {
		for _, series := range family.GetMetric() {
			r.series += max(1, len(series.GetHistogram().GetBucket())+2*min(1, len(series.GetHistogram().GetBucket())))
		}
	}
	r.inUse, err = process.ReadInUse(ctx, w.manager.Metrics)
	return r, err
}

func (r requests) String() string {
	return "clusters: " + r.clusters.String() + "; hub: " + r.hub.String()
}

func (r requests) writes() int { return r.clusters.Writes(auditlog.Work) + r.hub.Writes(auditlog.Work) }

// render returns the results as a table.
func render(results []result, machine string, s settings) string {
	per := func(r result, what func(rest) float64, all rest) float64 {
		return (what(all) - what(r.one)) / float64(r.clusters-1)
	}
	t := report.Table{Title: fmt.Sprintf("Many clusters, %d claims in each (%s)", s.claims, machine), Header: []string{
		"clusters", "all connected after", "processor", "resident", "heap in use", "goroutines", "series",
		"requests at rest in " + s.rest.String(), "after kill -9: connected after", "writes", "one more",
	}}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	for _, r := range results {
		all := r.empty
		if s.claims > 0 {
			all = r.full
		}
		memory := func(what func(rest) int64) string {
			further := per(r, func(r rest) float64 { return float64(what(r)) }, all)
			return fmt.Sprintf("%s (%.0f KiB each)", report.Mebibytes(what(all)), further/(1<<10))
		}
		number := func(what func(rest) float64) string {
			return fmt.Sprintf("%.0f (%.1f each)", what(all), per(r, what, all))
		}
		t.Add(fmt.Sprint(r.clusters), seconds(r.connect), seconds(r.processor),
			memory(func(r rest) int64 { return r.resident }), memory(func(r rest) int64 { return r.inUse.Heap }),
			number(func(r rest) float64 { return r.goroutines }), number(func(r rest) float64 { return float64(r.series) }),
			fmt.Sprint(r.idle.count()), seconds(r.reconnect), fmt.Sprint(r.crash.writes()), seconds(r.further))
	}
	text := t.String()
	for _, r := range results {
		text += fmt.Sprintf("\n%d clusters. At rest: %s. After kill -9: %s.\n", r.clusters, r.idle, r.crash)
	}
	return text
}
