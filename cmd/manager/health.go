// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// health answers /healthz and /readyz for the whole life of the process. It is not the manager's own endpoint because
// that one exists only once the hub has everything that the manager needs.
type health struct {
	// metric is 1 while the process is ready.
	metric prometheus.Gauge

	mu     sync.Mutex
	reason string
}

func newHealth(metric prometheus.Gauge) *health {
	return &health{metric: metric, reason: "starting"}
}

// notReady makes /readyz answer 503 with a reason.
func (h *health) notReady(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reason = reason
	if reason == "" {
		h.metric.Set(1)
	} else {
		h.metric.Set(0)
	}
}

// ready makes /readyz answer 200.
func (h *health) ready() { h.notReady("") }

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	reason := h.reason
	h.mu.Unlock()
	if reason != "" {
		http.Error(w, "not ready: "+reason, http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// listen starts answering. The returned function stops it.
func (h *health) listen(ctx context.Context, address string) (func(), error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for health probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.readyz)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			_ = listener.Close()
		}
	}, nil
}
