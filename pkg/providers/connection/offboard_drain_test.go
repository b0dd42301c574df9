// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// countingGate counts calls of Close. It is never idle.
type countingGate struct{ closed int }

func (*countingGate) Open(mcr.ClusterName)    {}
func (g *countingGate) Close(mcr.ClusterName) { g.closed++ } // Without a lock: only the worker may close it.
func (*countingGate) Forget(mcr.ClusterName)  {}
func (*countingGate) WaitIdle(ctx context.Context, _ mcr.ClusterName) error {
	<-ctx.Done()
	return ctx.Err()
}
func (*countingGate) WaitForSync(context.Context, mcr.ClusterName, cluster.Cluster) error { return nil }

// TestDrainClosesTheGateAtOnce: otherwise the work of a removed cluster would continue for a moment, and a cancelled
// drain would close the gate after another event has opened it.
func TestDrainClosesTheGateAtOnce(t *testing.T) {
	gate := &countingGate{}
	p, err := New(Options{Sources: []Source{newFakeSource()}, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	p.life.ctx = t.Context()
	creds, err := credentials.Parse(connectiontest.Kubeconfig(t, "https://127.0.0.1:1", nil, "x"), credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := transport.New("fake/ns/a", creds, credentials.Options{AllowLoopback: true}, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	r := &record{name: "fake/ns/a", reason: fleetv1alpha1.ReasonPaused, conn: &connected{creds: creds, transport: tr, prober: probe.New(tr, 1)}}
	p.offboarding.start(r, logr.Discard())
	if gate.closed != 1 {
		t.Errorf("want the gate closed when the drain begins, got %d times", gate.closed)
	}
	p.offboarding.cancel(r)
	p.life.running.Wait()
	if gate.closed != 1 {
		t.Error("want nothing closed by a drain that was called off")
	}
}
