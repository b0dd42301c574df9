// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Manager runs controllers, and engages workload clusters as the fleet's provider does. The controllers are set up
// before Start.
type Manager struct {
	mcmanager.Manager

	// Gate is the gate that the controllers get as the fleet's gate.
	Gate *multicluster.Gate

	tb      testing.TB
	scheme  *runtime.Scheme
	running sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

// NewManager returns a manager of a hub. It is stopped when the test ends, if not before.
func NewManager(tb testing.TB, hub *rest.Config, scheme *runtime.Scheme) *Manager {
	tb.Helper()
	mgr, err := mcmanager.New(hub, nil, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: false,
	})
	if err != nil {
		tb.Fatal(err)
	}
	m := &Manager{Manager: mgr, Gate: multicluster.NewGate(), tb: tb, scheme: scheme}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	tb.Cleanup(m.Stop)
	return m
}

// Run starts the manager and returns.
func (m *Manager) Run() {
	m.running.Go(func() {
		if err := m.Start(m.ctx); err != nil {
			m.tb.Errorf("manager: %v", err)
		}
	})
}

// Stop stops the manager and what it has engaged, and waits for both.
func (m *Manager) Stop() {
	m.cancel()
	m.running.Wait()
}

// IsStopped is whether Stop was called.
func (m *Manager) IsStopped() bool { return m.ctx.Err() != nil }

// Connect opens the gate for a cluster and engages it. The function that it returns ends the connection, and leaves the
// gate as it is.
func (m *Manager) Connect(name mcr.ClusterName, cfg *rest.Config) (disconnect context.CancelFunc) {
	m.tb.Helper()
	cl, err := cluster.New(cfg, func(o *cluster.Options) { o.Scheme = m.scheme })
	if err != nil {
		m.tb.Fatal(err)
	}
	ctx, disconnect := context.WithCancel(m.ctx)
	m.running.Go(func() { _ = cl.Start(ctx) })
	m.Gate.Open(name)
	if err := m.Engage(ctx, name, cl); err != nil {
		m.tb.Fatal(err)
	}
	return disconnect
}
