// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

// writers is the number of requests in flight when objects are created or deleted.
const writers = 8

// inParallel does something n times.
func inParallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

func (w *world) createNamespace(ctx context.Context, name string) error {
	return w.workload.Create(ctx, "/api/v1/namespaces", []byte(apiserver.Manifest("v1", "Namespace", "", name, nil)))
}

// seed creates the Applications of a run and their components. No program has seen them before.
func (w *world) seed(ctx context.Context, k applicationKind, apps int) (set, error) {
	w.runs++
	s := set{run: w.runs, apps: apps}
	namespaces := s.namespaces()
	err := inParallel(ctx, len(namespaces), func(ctx context.Context, i int) error { return w.createNamespace(ctx, namespaces[i]) })
	if err != nil {
		return s, err
	}
	return s, inParallel(ctx, apps, func(ctx context.Context, i int) error {
		for _, c := range components() {
			if err := w.workload.Create(ctx, c.collection(s.namespace(i)), c.object(s.name(i))); err != nil {
				return err
			}
		}
		return w.workload.Create(ctx, k.collection(s.namespace(i)), k.application(s.name(i)))
	})
}

// clear deletes the objects of a run, and checks that they are gone. Its namespaces stay, and are empty.
func (w *world) clear(ctx context.Context, k applicationKind, s set) error {
	namespaces := s.namespaces()
	err := inParallel(ctx, len(namespaces), func(ctx context.Context, i int) error { return w.empty(ctx, k, namespaces[i]) })
	if err != nil {
		return fmt.Errorf("cannot delete the objects of a run: %w", err)
	}
	return nil
}

// empty deletes the Applications and the components in a namespace.
func (w *world) empty(ctx context.Context, k applicationKind, namespace string) error {
	paths := []string{k.collection(namespace)}
	for _, c := range components() {
		paths = append(paths, c.collection(namespace))
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, w.workload.Remove(ctx, path+"?propagationPolicy=Background"))
		var left struct {
			Items []apiserver.Meta `json:"items"`
		}
		errs = append(errs, w.workload.Get(ctx, path, &left))
		if n := len(left.Items); n > 0 {
			errs = append(errs, fmt.Errorf("%d objects at %s are still there", n, path))
		}
	}
	return errors.Join(errs...)
}

// weighDown creates the unrelated objects that are missing.
func (w *world) weighDown(ctx context.Context, objects int) error {
	kinds := components()
	missing := objects - w.ballast
	if missing <= 0 {
		return nil
	}
	namespace := func(i int) string { return fmt.Sprintf("ballast-%d-%d", w.ballast, i/(len(kinds)*perNamespace)) }
	err := inParallel(ctx, (missing-1)/(len(kinds)*perNamespace)+1, func(ctx context.Context, i int) error {
		return w.createNamespace(ctx, namespace(i*len(kinds)*perNamespace))
	})
	if err != nil {
		return err
	}
	err = inParallel(ctx, missing, func(ctx context.Context, i int) error {
		c := kinds[i%len(kinds)]
		return w.workload.Create(ctx, c.collection(namespace(i)), c.unrelated(i))
	})
	w.ballast = objects
	return err
}
