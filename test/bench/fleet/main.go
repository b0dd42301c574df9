// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fleet measures bin/manager on a real fleet of test/localfleet: its memory and goroutines with a given number
// of enrolled clusters, the time from labelling a Cluster to the first reconcile of something in it, and the time from
// creating a claim to the arrival of its Secret. It prints a table in Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

func main() {
	clusters := flag.Int("workloads", 2, "number of workload clusters")
	rounds := flag.Int("rounds", 10, "how often each latency is measured")
	flag.Parse()
	// controller-runtime's client, which the fleet uses, complains about the lack of a logger in the middle of the output.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *clusters, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called.
	}
}

func run(ctx context.Context, clusters, rounds int) (err error) {
	repository, err := localfleet.Repository()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "masthead-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: dir, Workloads: localfleet.WorkloadNames(clusters), Log: os.Stderr,
		WithCrossplane: true, WithClusterAPI: true, WithKwok: true, StopWithParent: true,
		WorkloadRBAC: []string{
			filepath.Join(repository, "config", "workload"),
			filepath.Join(repository, "config", "samples", "workload", "claims-rights.yaml"),
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, fleet.Down(down))
	}()
	if err := harness.Install(ctx, fleet); err != nil {
		return err
	}
	manager, err := harness.StartManager(ctx, fleet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Kill()) }()

	b := &bench{fleet: fleet, manager: manager}
	for _, name := range localfleet.WorkloadNames(clusters) {
		if err := b.enrol(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range localfleet.WorkloadNames(clusters) {
		if err := b.waitServed(ctx, name); err != nil {
			return err
		}
	}
	memory, goroutines, err := b.settled(ctx)
	if err != nil {
		return err
	}
	var secrets, first []time.Duration
	for i := range rounds {
		d, err := b.claimToSecret(ctx, "w1", fmt.Sprintf("bench-%d", i))
		if err != nil {
			return err
		}
		secrets = append(secrets, d)
	}
	for i := range rounds {
		d, err := b.labelToReconcile(ctx, "w1", fmt.Sprintf("waiting-%d", i))
		if err != nil {
			return err
		}
		first = append(first, d)
	}
	fmt.Printf("| %d | %.0f MiB | %.0f | %s | %s |\n", clusters, float64(memory)/(1<<20), goroutines, spread(first), spread(secrets))
	fmt.Fprintf(os.Stderr, "%s/%s, %d cores, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	return nil
}

func spread(d []time.Duration) string {
	slices.Sort(d)
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf("%s (%s to %s)", round(d[len(d)/2]), round(d[0]), round(d[len(d)-1]))
}
