// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// serveMetrics serves /metrics, and beside it the log level endpoint, for the whole life of the process: a manager that
// waits for the hub must be observable, too. It is not the manager's own endpoint because that one exists only once the
// hub has everything that the manager needs.
//
// The returned context ends with the given one, and when the endpoint fails, which is then its cause. The returned
// function stops the endpoint and waits for its end.
func serveMetrics(ctx context.Context, cfg *rest.Config, o MetricsOptions, level http.Handler) (context.Context, func(), error) {
	mo := metricsserver.Options{BindAddress: o.BindAddress, CertDir: o.CertDir}
	if o.Secure {
		mo.SecureServing = true
		mo.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if o.Secure || isLoopback(o.BindAddress) {
		mo.ExtraHandlers = map[string]http.Handler{logLevelPath: level}
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create the client that checks in the hub who may read metrics: %w", err)
	}
	server, err := metricsserver.NewServer(mo, cfg, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create the metrics endpoint: %w", err)
	}
	if server == nil {
		return ctx, func() {}, nil
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ctx, failed := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Start(serving); err != nil {
			failed(fmt.Errorf("cannot serve metrics: %w", err))
		}
	}()
	return ctx, func() {
		stop()
		<-done
		failed(nil)
	}, nil
}
