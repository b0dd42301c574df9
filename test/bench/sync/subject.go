// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/harness"
)

// A subject is a program that carries claims.
type subject interface {
	// start runs it and makes it offer a kind in every workload cluster.
	start(ctx context.Context, k claims.Kind) error

	// stop ends it, and leaves nothing that would cause work in its next run.
	stop(ctx context.Context, k claims.Kind) error

	// user is its user name at the API servers.
	user() string

	// pids are its processes.
	pids() []int

	// metrics reads its metrics; nil if it publishes none.
	metrics() func(context.Context) (harness.Metrics, error)
}

// waitServed waits until a kind can be created in every workload cluster.
func (w *world) waitServed(ctx context.Context, k claims.Kind) error {
	return w.everywhere(ctx, func(ctx context.Context, a *apiserver.Client) error {
		return a.WaitServed(ctx, k.Collection(claims.Namespace)+"?limit=1")
	})
}

// everywhere calls do for every workload cluster, for all at the same time.
func (w *world) everywhere(ctx context.Context, do func(context.Context, *apiserver.Client) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range w.workloads {
		group.Go(func() error { return do(ctx, a) })
	}
	return group.Wait()
}
