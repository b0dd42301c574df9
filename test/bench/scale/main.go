// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scale measures bin/manager with many workload clusters, which test/manyclusters plays on one API server: how
// long it takes to connect them all, what it takes at rest, and what a crash and one more cluster cost.
// test/bench/README.md describes how. It prints a table in Markdown.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/masthead-dev/masthead/test/bench/report"
)

// settings are the flags.
type settings struct {
	clusters    []int
	claims      int
	rest        time.Duration
	patience    time.Duration
	memoryLimit string
	pprof       string
}

func main() {
	report.Main("bench-scale", func(args []string, usage io.Writer) (report.Measure, string, error) {
		s, output, err := parse(args, usage)
		return func(ctx context.Context) (string, error) {
			results, err := run(ctx, s)
			return render(results, report.Machine(context.WithoutCancel(ctx)), s), err
		}, output, err
	})
}

// parse reads the command line. It returns the settings, and the file to which the table is also written, if any.
func parse(args []string, usage io.Writer) (settings, string, error) {
	s := settings{}
	f := flag.NewFlagSet("bench-scale", flag.ContinueOnError)
	f.SetOutput(usage)
	clusters := f.String("clusters", "10,100,1000", "numbers of clusters, separated by commas, each measured on its own")
	f.IntVar(&s.claims, "claims", 0, "claims in each cluster")
	f.DurationVar(&s.rest, "rest", 30*time.Second, "how long requests are counted at rest")
	f.DurationVar(&s.patience, "patience", 20*time.Minute, "how long to wait for each step")
	f.StringVar(&s.memoryLimit, "gomemlimit", "921MiB",
		"GOMEMLIMIT of the manager; the default is what it takes in the container of config/manager")
	f.StringVar(&s.pprof, "pprof-bind-address", "", "loopback address at which the manager serves its profiles")
	output := f.String("output", "", "file to which the table is written as well")
	if err := f.Parse(args); err != nil {
		return settings{}, "", err
	}
	if f.NArg() > 0 {
		return settings{}, "", fmt.Errorf("unexpected arguments: %q", f.Args())
	}
	for text := range strings.SplitSeq(*clusters, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return settings{}, "", fmt.Errorf("%q is not a number of clusters, of which there are at least two", text)
		}
		s.clusters = append(s.clusters, n)
	}
	if s.claims < 0 || s.rest <= 0 || s.patience <= 0 {
		return settings{}, "", fmt.Errorf("--claims must not be negative, --rest and --patience must be positive")
	}
	return s, *output, nil
}
