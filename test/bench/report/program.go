// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

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
)

// Measure returns tables in Markdown. With an error, it also returns the tables of what was measured before it.
type Measure func(ctx context.Context) (tables string, err error)

// Main is the main function of a benchmark. parse reads the flags: what to measure, and the file to which the tables
// are written besides the standard output, if any.
func Main(name string, parse func(args []string, usage io.Writer) (measure Measure, output string, err error)) {
	measure, output, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(2)
	}
	// controller-runtime's client, which the fleet uses, complains about the lack of a logger in the middle of the output.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = write(ctx, measure, output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, measure Measure, output string) error {
	out := io.Writer(os.Stdout)
	if output != "" {
		// Before the measurement, which takes long.
		file, err := os.Create(filepath.Clean(output))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		out = io.MultiWriter(os.Stdout, file)
	}
	tables, err := measure(ctx)
	_, printErr := io.WriteString(out, tables)
	return errors.Join(err, printErr)
}
