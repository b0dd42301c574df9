// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command application measures how bin/manager keeps the status of Applications, and kubernetes-sigs/application beside it, on the
// same API server with the same components: how soon it is there, how soon a change shows in it, and what that costs. It also
// shows what each does in cases in which a controller of this kind can go wrong. docs/benchmarks.md says how, and what is fair
// about it. It prints tables in Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/test/bench/report"
)

func main() {
	s, output, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-application:", err)
		os.Exit(2)
	}
	// controller-runtime's client, which the fleet uses, complains about the lack of a logger in the middle of the output.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = measure(ctx, s, output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-application:", err)
		os.Exit(1)
	}
}

// measure runs everything and prints the tables, also of what was measured before an error.
func measure(ctx context.Context, s settings, output string) (err error) {
	out := io.Writer(os.Stdout)
	if output != "" {
		file, err := os.Create(filepath.Clean(output))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		out = io.MultiWriter(os.Stdout, file)
	}
	results, answers, err := run(ctx, s)
	_, printErr := io.WriteString(out, render(results, answers, report.Machine(context.WithoutCancel(ctx))))
	return errors.Join(err, printErr)
}
