// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/bench/report"
	"github.com/masthead-dev/masthead/test/manyclusters"
)

// goroutines is the metric of their number.
const goroutines = "go_goroutines"

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
	// one is with one cluster, idle with all, and rest with their claims, too.
	one, idle, rest rest

	connect, reconnect, further time.Duration
	// processor is what the manager took until all were connected.
	processor time.Duration
	// atRest are the requests while the clusters were idle.
	atRest requests
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

// measure measures n clusters, step by step.
func measure(ctx context.Context, s settings, n int) (r result, err error) {
	w, err := newWorld(ctx, s, n)
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return r, err
	}
	for _, step := range []func(context.Context, *result) error{
		w.measureOne, w.measureStart, w.measureIdle, w.measureClaims, w.measureCrash, w.measureFurther,
	} {
		if err := step(ctx, &r); err != nil {
			return r, err
		}
		fmt.Fprintf(os.Stderr, "%d clusters: connected after %s, again after %s, one more after %s; at rest %+v\n",
			n, r.connect, r.reconnect, r.further, r.rest)
	}
	return r, nil
}

// measureOne waits until the first cluster has what the manager installs, and measures a manager that finds it there.
func (w *world) measureOne(ctx context.Context, r *result) error {
	if err := w.launch(); err != nil {
		return err
	}
	for _, path := range []string{
		w.kind.Collection("") + "?limit=1", "/apis/apps.masthead.dev/v1alpha1/applications?limit=1", w.kind.XRDPath(),
	} {
		if err := w.other.WaitServed(ctx, path); err != nil {
			return err
		}
	}
	if _, err := w.settled(ctx); err != nil {
		return err
	}
	// While it installs, a manager watches more than one that finds everything.
	if err := errors.Join(w.manager.Stop(ctx), w.launch()); err != nil {
		return err
	}
	if _, err := w.settled(ctx); err != nil {
		return err
	}
	w.watches = w.proxy.Watches(manyclusters.Name(0))
	var err error
	r.one, err = w.measureRest(ctx)
	return errors.Join(err, w.manager.Stop(ctx))
}

// measureStart enrols the others, and starts the manager.
func (w *world) measureStart(ctx context.Context, r *result) error {
	if err := w.enrol(ctx, 1, w.clusters); err != nil {
		return err
	}
	var err error
	if r.connect, err = w.start(ctx); err != nil {
		return err
	}
	r.clusters = w.clusters
	usage, err := process.ReadUsage(w.manager.PID())
	r.processor = usage.Processor
	return err
}

// start starts the manager, and returns how long it takes until all clusters are connected.
func (w *world) start(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	if err := w.launch(); err != nil {
		return 0, err
	}
	err := w.connected(ctx, w.clusters)
	return time.Since(begun), err
}

func (w *world) measureIdle(ctx context.Context, r *result) error {
	before, err := w.settled(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.settings.rest):
	}
	after, err := w.requests()
	if err != nil {
		return err
	}
	r.atRest = after.since(before)
	r.idle, err = w.measureRest(ctx)
	r.rest = r.idle
	return err
}

// measureClaims measures the manager at rest again, with claims in all clusters.
func (w *world) measureClaims(ctx context.Context, r *result) error {
	if w.settings.claims == 0 {
		return nil
	}
	if err := w.createClaims(ctx); err != nil {
		return err
	}
	if _, err := w.settled(ctx); err != nil {
		return err
	}
	var err error
	r.rest, err = w.measureRest(ctx)
	return err
}

// measureCrash kills the manager, and starts it again once the clusters have noticed.
func (w *world) measureCrash(ctx context.Context, r *result) error {
	if err := w.manager.Kill(); err != nil {
		return err
	}
	for i := range w.clusters {
		ended := func(context.Context) (bool, error) { return w.proxy.Watches(manyclusters.Name(i)) == 0, nil }
		if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, ended); err != nil {
			return err
		}
	}
	before, err := w.requests()
	if err != nil {
		return err
	}
	if r.reconnect, err = w.start(ctx); err != nil {
		return err
	}
	after, err := w.settled(ctx)
	r.crash = after.since(before)
	return err
}

// measureFurther enrols one more.
func (w *world) measureFurther(ctx context.Context, r *result) error {
	begun := time.Now()
	if err := w.enrol(ctx, w.clusters, w.clusters+1); err != nil {
		return err
	}
	err := w.connected(ctx, w.clusters+1)
	r.further = time.Since(begun)
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
	r.goroutines = m.Value(goroutines)
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
	t := report.Table{Title: fmt.Sprintf("Many clusters, %d claims in each (%s)", s.claims, machine), Header: []string{
		"clusters", "all connected after", "processor", "resident", "heap in use", "goroutines", "series",
		"requests at rest in " + s.rest.String(), "after kill -9: connected after", "writes", "one more",
	}}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	for _, r := range results {
		further := func(what func(rest) float64) float64 { return (what(r.idle) - what(r.one)) / float64(r.clusters-1) }
		memory := func(what func(rest) int64) string {
			each := further(func(r rest) float64 { return float64(what(r)) }) / (1 << 10)
			text := fmt.Sprintf("%s (%.0f KiB each)", report.Mebibytes(what(r.idle)), each)
			if claims := r.clusters * s.claims; claims > 0 {
				claim := float64(what(r.rest)-what(r.idle)) / float64(claims) / (1 << 10)
				text += fmt.Sprintf(", with claims %s (%.1f KiB each)", report.Mebibytes(what(r.rest)), claim)
			}
			return text
		}
		number := func(what func(rest) float64) string {
			text := fmt.Sprintf("%.0f (%.1f each)", what(r.idle), further(what))
			if s.claims > 0 {
				text += fmt.Sprintf(", with claims %.0f", what(r.rest))
			}
			return text
		}
		t.Add(fmt.Sprint(r.clusters), seconds(r.connect), seconds(r.processor),
			memory(func(r rest) int64 { return r.resident }), memory(func(r rest) int64 { return r.inUse.Heap }),
			number(func(r rest) float64 { return r.goroutines }), number(func(r rest) float64 { return float64(r.series) }),
			fmt.Sprint(r.atRest.count()), seconds(r.reconnect), fmt.Sprint(r.crash.writes()), seconds(r.further))
	}
	var text strings.Builder
	text.WriteString(t.String())
	for _, r := range results {
		fmt.Fprintf(&text, "\n%d clusters. At rest: %s. After kill -9: %s.\n", r.clusters, r.atRest, r.crash)
	}
	return text.String()
}
