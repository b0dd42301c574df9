// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
)

// ceilingWriters is the number of claims in flight when the API servers themselves are measured: enough to keep the
// cores of the machine busy, and few enough not to make a queue in front of them.
const ceilingWriters = 64

// ceiling measures the maximum that the API servers of the machine can do: the same writes for each claim as when
// Masthead carries it, sent by the benchmark, which knows what to send without watching, comparing or waiting. No
// program that sends these writes can be faster, however it is written, because it has to share the machine with the
// servers, too.
func (w *world) ceiling(ctx context.Context, sc scenario) (r result, err error) {
	r.scenario = sc
	w.kinds++
	k := claims.KindOfRun(w.kinds)
	if err := w.hub.Apply(ctx, apiserver.CRDPath+k.CRDName(), k.CRD()); err != nil {
		return r, err
	}
	err = w.everywhere(ctx, func(ctx context.Context, a *apiserver.Client) error {
		return a.Apply(ctx, apiserver.CRDPath+k.CRDName(), k.CRD())
	})
	if err != nil {
		return r, err
	}
	if err := w.waitServed(ctx, k); err != nil {
		return r, err
	}
	name := func(i int) (*apiserver.Client, string) {
		a := w.workloads[i%len(w.workloads)]
		return a, fmt.Sprintf("ceiling-%s-%d", a.Cluster, i)
	}
	r.up, err = together(ctx, r.objects, func(ctx context.Context, i int) error {
		a, name := name(i)
		if err := a.Do(ctx, http.MethodPost, k.Collection(claims.Namespace), apiserver.TypeJSON, k.Claim(name)); err != nil {
			return err
		}
		finalizer := []byte(`{"metadata":{"finalizers":["agent.masthead.dev/requirement"]}}`)
		if err := a.Do(ctx, http.MethodPatch, k.Collection(claims.Namespace)+"/"+name, apiserver.TypeMerge, finalizer); err != nil {
			return err
		}
		return w.hub.Do(ctx, http.MethodPatch, k.Collection(claims.Target)+"/"+name+"?fieldManager=ceiling&force=true", apiserver.TypeApply, k.Claim(name))
	})
	if err != nil {
		return r, err
	}
	r.back, err = together(ctx, r.objects, func(ctx context.Context, i int) error {
		a, name := name(i)
		if err := w.hub.Do(ctx, http.MethodPatch, k.Collection(claims.Target)+"/"+name+"/status", apiserver.TypeMerge, claims.Status()); err != nil {
			return err
		}
		return a.Do(ctx, http.MethodPatch, k.Collection(claims.Namespace)+"/"+name+"/status", apiserver.TypeMerge, claims.Status())
	})
	return r, err
}

// together calls do n times, some of the calls at once, and returns how long all of them took.
func together(ctx context.Context, n int, do func(context.Context, int) error) (time.Duration, error) {
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ceilingWriters)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	err := group.Wait()
	return time.Since(begun), err
}
