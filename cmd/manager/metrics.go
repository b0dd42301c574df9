// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"k8s.io/client-go/rest"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubRequests makes client-go count requests to the hub alone. The owner of a workload cluster chooses its host and its
// status codes: each would be a series that stays. masthead_cluster_requests_total counts those to clusters.
type hubRequests struct {
	clientmetrics.ResultMetric

	host atomic.Pointer[string]
}

// requestMetric is there before any client is, since clients read the variable of client-go without a lock.
var requestMetric = func() *hubRequests {
	m := &hubRequests{ResultMetric: clientmetrics.RequestResult}
	clientmetrics.RequestResult = m
	return m
}()

// Increment implements ResultMetric.
func (m *hubRequests) Increment(ctx context.Context, code, method, host string) {
	if n, err := strconv.Atoi(code); err == nil && http.StatusText(n) == "" {
		code = "<error>" // Clusters may be behind the front end of the hub.
	}
	if hub := m.host.Load(); hub != nil && *hub == host {
		m.ResultMetric.Increment(ctx, code, method, host)
	}
}

// setHub says which API server is the hub's.
func (m *hubRequests) setHub(cfg *rest.Config) error {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return fmt.Errorf("cannot read the address of the hub: %w", err)
	}
	m.host.Store(&server.Host)
	return nil
}

// serveMetrics serves /metrics, and beside it the log level endpoint, for the whole life of the process: a manager that
// waits for the hub must be observable, too. It is not the manager's own endpoint because that one exists only once the
// hub has everything that the manager needs.
//
// The returned context ends with the given one, and when the endpoint fails, which is then its cause. The returned
// function stops the endpoint and waits for its end.
func serveMetrics(ctx context.Context, cfg *rest.Config, o MetricsOptions, level http.Handler) (context.Context, func(), error) {
	if err := requestMetric.setHub(cfg); err != nil {
		return nil, nil, err
	}
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
