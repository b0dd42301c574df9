// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command application measures how bin/manager keeps the status of Applications, and kubernetes-sigs/application beside
// it, on the same API server with the same components: how soon the status exists, how soon it shows a change, and what
// that costs. It also shows how each behaves in cases in which a controller of this kind can go wrong.
// test/bench/README.md describes how it measures, and what is fair about the comparison. It prints tables in Markdown.
package main

import (
	"context"
	"io"

	"github.com/masthead-dev/masthead/test/bench/report"
)

func main() {
	report.Main("bench-application", func(args []string, usage io.Writer) (report.Measure, string, error) {
		s, output, err := parse(args, usage)
		return func(ctx context.Context) (string, error) {
			results, answers, err := run(ctx, s)
			return render(results, answers, report.Machine(context.WithoutCancel(ctx))), err
		}, output, err
	})
}
