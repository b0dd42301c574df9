// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localfleet runs a fleet of real control planes on one machine, for the demo, for tests and for development.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "localfleet: %v\n", err)
		os.Exit(1)
	}
}
