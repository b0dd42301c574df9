// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sync measures how bin/manager carries claims from workload clusters to the hub and their status back, and
// kube-bind's konnector beside it, on the same real API servers with the same kind. docs/benchmarks.md says how, and what is
// fair about it. It prints tables in Markdown.
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
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/test/bench/report"
)

// settings are the flags.
type settings struct {
	clusters, objects []int
	konnector, lifted string
	// crds is the folder of kube-bind's CRDs.
	crds         string
	rate         int
	paced        time.Duration
	idle         time.Duration
	managerFlags []string
	// ceiling says that the API servers are measured alone, too.
	ceiling bool
	verbose bool
}

func main() {
	s, output, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sync:", err)
		os.Exit(2)
	}
	// controller-runtime's client, which the fleet uses, complains about the lack of a logger in the middle of the output.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = measure(ctx, s, output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sync:", err)
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
	results, err := run(ctx, s)
	_, printErr := io.WriteString(out, render(results, report.Machine(ctx), s))
	return errors.Join(err, printErr)
}
