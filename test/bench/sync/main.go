// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sync measures how bin/manager carries claims from workload clusters to the hub and their status back, and
// kube-bind's konnector beside it, on the same real API servers with the same kind. test/bench/README.md describes how
// it measures, and what is fair about the comparison. It prints tables in Markdown.
package main

import (
	"context"
	"io"
	"time"

	"github.com/masthead-dev/masthead/test/bench/report"
)

// settings are the flags.
type settings struct {
	clusters, objects []int
	konnector, lifted string
	// crds is the folder of kube-bind's CRDs.
	crds         string
	rate         int
	turns        int
	paced        time.Duration
	idle         time.Duration
	settle       time.Duration
	managerFlags []string
	// ceiling is whether the API servers are measured alone, too.
	ceiling bool
	verbose bool
}

func main() {
	report.Main("bench-sync", func(args []string, usage io.Writer) (report.Measure, string, error) {
		s, output, err := parse(args, usage)
		return func(ctx context.Context) (string, error) {
			results, err := run(ctx, s)
			return render(results, report.Machine(context.WithoutCancel(ctx)), s), err
		}, output, err
	})
}
