// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// phase is what was measured while claims were carried.
type phase struct {
	up, back []time.Duration
	// processor is the CPU time of the manager, and servers that of the hostile API servers.
	processor, servers time.Duration
	// took is how long the phase took, and peak the most memory that the manager occupied.
	took time.Duration
	peak int64
}

// rest is what the manager uses when nothing happens.
type rest struct {
	resident                int64
	inUse                   process.InUse
	goroutines, descriptors float64
}

// result is what one run showed.
type result struct {
	before, after rest
	// without are the phases without hostile clusters. enrolling are those that begin when hostile clusters have been
	// enrolled, and with those that begin when a condition of each of them reports what is wrong. Each has one per round.
	without, enrolling, with []phase
	// peak is the most memory that was occupied from their enrolment until their un-enrolment.
	peak []int64
	// said is how long it took until a condition of each reported what is wrong.
	said       []time.Duration
	conditions map[string][]condition
	trapped    int
	// series are the metric series that still mention a hostile cluster after all have been un-enrolled.
	series []string
}

// run measures, in turn, without and with hostile clusters.
func run(ctx context.Context, s settings) (r result, err error) {
	r.conditions = map[string][]condition{}
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s  %s\n", time.Since(begun).Round(time.Second), fmt.Sprintf(format, args...))
	}
	w, err := newWorld(ctx, s)
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return r, err
	}
	if _, err := w.pace(ctx, s, "warm", s.paced); err != nil {
		return r, err
	}
	if r.before, err = w.rest(ctx); err != nil {
		return r, err
	}
	for round := range s.rounds {
		if err := w.atRest(ctx, s); err != nil {
			return r, err
		}
		p, err := w.steady(ctx, s, fmt.Sprintf("without-%d", round))
		if err != nil {
			return r, err
		}
		r.without = append(r.without, p)
		say("without: %s", p)
		if p, err = w.beside(ctx, s, round, &r); err != nil {
			return r, err
		}
		r.with = append(r.with, p)
		say("from the enrolment of %d hostile clusters on: %s", len(s.attacks), r.enrolling[round])
		say("with them, after %s: %s", r.said[round].Round(time.Second), p)
	}
	if r.after, err = w.settled(ctx, r.before); err != nil {
		return r, err
	}
	m, err := w.manager.Metrics(ctx)
	r.series = m.Series("hostile-")
	return r, err
}

// String is the phase for the user who waits.
func (p phase) String() string {
	return fmt.Sprintf("p99 %s up, %s back, %s of %s processor, %s peak", report.Percentile(p.up, 99), report.Percentile(p.back, 99),
		p.processor, p.took, report.Mebibytes(p.peak))
}

// beside carries claims with hostile clusters enrolled, from their enrolment on, and again when a condition reports
// what is wrong with each of them.
func (w *world) beside(ctx context.Context, s settings, round int, r *result) (p phase, err error) {
	w.servers, err = startServers(ctx, s.attacks)
	if err != nil {
		return p, err
	}
	defer func() {
		trapped, closeErr := w.servers.close()
		w.servers = nil
		r.trapped += trapped
		err = errors.Join(err, closeErr)
	}()
	if err := w.enrol(ctx, w.servers); err != nil {
		return p, err
	}
	enrolled := time.Now()
	if p, err = w.pace(ctx, s, fmt.Sprintf("enrolling-%d", round), s.paced); err != nil {
		return p, err
	}
	r.enrolling = append(r.enrolling, p)
	if err := w.forgetPeak(); err != nil {
		return p, err
	}
	if err := w.said(ctx, s); err != nil {
		return p, err
	}
	r.said = append(r.said, time.Since(enrolled))
	u, err := process.ReadUsage(w.manager.PID())
	if err != nil {
		return p, err
	}
	if p, err = w.steady(ctx, s, fmt.Sprintf("with-%d", round)); err != nil {
		return p, err
	}
	r.peak = append(r.peak, max(r.enrolling[round].peak, u.Peak, p.peak))
	for _, a := range s.attacks {
		profile, err := w.profile(ctx, a)
		if err != nil && !errors.Is(err, apiserver.ErrNotFound) {
			return p, err
		}
		r.conditions[a.Name] = profile.wrong()
	}
	return p, w.unenrol(ctx, s.attacks)
}

// said waits until a condition of each hostile cluster reports what is wrong with it. If that takes too long, it stops
// waiting: the tables show the clusters of which nothing is reported.
func (w *world) said(ctx context.Context, s settings) error {
	end := time.Now().Add(s.patience)
	for _, a := range s.attacks {
		for {
			p, err := w.profile(ctx, a)
			if err != nil && !errors.Is(err, apiserver.ErrNotFound) {
				return err
			}
			if len(p.wrong()) > 0 || time.Now().After(end) {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
	return nil
}

// steady is pace, after a lead at the same rate that is not measured: API servers that have been idle answer the first
// claims of a phase more slowly than the others.
func (w *world) steady(ctx context.Context, s settings, prefix string) (p phase, err error) {
	if _, err := w.pace(ctx, s, prefix+"-lead", s.lead); err != nil {
		return p, err
	}
	return w.pace(ctx, s, prefix, s.paced)
}

// atRest waits until the manager has little work left, such as the removal of what hostile clusters of the previous
// round have created in the hub. If that takes too long, it stops waiting.
func (w *world) atRest(ctx context.Context, s settings) error {
	const look, little = 5 * time.Second, 5 * time.Second / 20
	end := time.Now().Add(s.patience)
	for {
		before, err := process.ReadUsage(w.manager.PID())
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
		after, err := process.ReadUsage(w.manager.PID())
		if err != nil || after.Processor-before.Processor < little || time.Now().After(end) {
			return err
		}
	}
}

// pace carries claims at one rate for a while.
func (w *world) pace(ctx context.Context, s settings, prefix string, d time.Duration) (p phase, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.forgetPeak(); err != nil {
		return p, err
	}
	begun := time.Now()
	before, err := process.ReadUsage(w.manager.PID())
	if err != nil {
		return p, err
	}
	hostileBefore, err := w.serversUsage()
	if err != nil {
		return p, err
	}
	l, err := claims.NewLoad(ctx, w.kind, w.hub, w.workloads)
	if err != nil {
		return p, err
	}
	if err := l.Pace(ctx, prefix, s.rate, d); err != nil {
		return p, err
	}
	samples := l.Samples()
	p.up, p.back = claims.Durations(samples, claims.Created, claims.Arrived), claims.Durations(samples, claims.Written, claims.Returned)
	after, err := process.ReadUsage(w.manager.PID())
	if err != nil {
		return p, err
	}
	hostileAfter, err := w.serversUsage()
	p.processor, p.servers = after.Processor-before.Processor, hostileAfter.Processor-hostileBefore.Processor
	p.took, p.peak = time.Since(begun), after.Peak
	return p, err
}

// serversUsage is what the hostile API servers have used; zero while there are none.
func (w *world) serversUsage() (process.Usage, error) {
	if w.servers == nil {
		return process.Usage{}, nil
	}
	return process.ReadUsage(w.servers.pid())
}

// forgetPeak makes the kernel reset the peak of the manager's memory.
func (w *world) forgetPeak() error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.manager.PID()), []byte("5"), 0); err != nil {
		return fmt.Errorf("cannot reset the peak of the manager's memory: %w", err)
	}
	return nil
}

func (w *world) rest(ctx context.Context) (r rest, err error) {
	if r.inUse, err = process.ReadInUse(ctx, w.manager.Metrics); err != nil {
		return r, err
	}
	m, err := w.manager.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.goroutines, r.descriptors = m.Value("go_goroutines"), m.Value("process_open_fds")
	r.resident, err = w.manager.ResidentBytes()
	return r, err
}

// settled waits, for up to a minute, until the numbers of goroutines and descriptors are back at what they were. What
// is left then is reported in any case.
func (w *world) settled(ctx context.Context, before rest) (rest, error) {
	const most = time.Minute
	begun := time.Now()
	for {
		r, err := w.rest(ctx)
		if err != nil || r.goroutines <= before.goroutines && r.descriptors <= before.descriptors || time.Since(begun) > most {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
