// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// newDrainable returns a provider that was not started, and a connection that its records can have.
func newDrainable(t *testing.T, gate Gate) (*Provider, *connected) {
	t.Helper()
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
	return p, &connected{creds: creds, transport: tr, prober: probe.New(tr, 1)}
}

// TestDrainClosesTheGateAtOnce: otherwise the work of a removed cluster would continue for a moment, and a cancelled
// drain would close the gate after another event has opened it.
func TestDrainClosesTheGateAtOnce(t *testing.T) {
	gate := &countingGate{}
	p, conn := newDrainable(t, gate)
	r := &record{name: "fake/ns/a", reason: fleetv1alpha1.ReasonPaused, conn: conn}
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

// idleGate is idle at once.
type idleGate struct{ countingGate }

func (*idleGate) WaitIdle(context.Context, mcr.ClusterName) error { return nil }

// TestSlowOffboardingHoldsUpNoOtherForLong has four times as many clusters as a namespace has places. Each keeps on
// answering that it is not available now, for as long as OffboardTimeout lets it.
func TestSlowOffboardingHoldsUpNoOtherForLong(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, namespace string
		within            time.Duration
	}{
		"OfItsNamespace":     {"A slow cluster needs little, so it goes on without a place.", "slow", 3 * time.Minute},
		"OfAnotherNamespace": {"A namespace has no more than its share.", "other", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, conn := newDrainable(t, &idleGate{})
				var waited time.Duration
				since := time.Now()
				p.OnOffboard(func(ctx context.Context, cluster mcr.ClusterName) error {
					if cluster == "live" {
						waited = time.Since(since)
						return nil
					}
					begin := time.Now()
					<-ctx.Done()
					if got := time.Since(begin); got != p.o.OffboardTimeout {
						t.Errorf("want a slow one to have all of its time, got %s", got)
					}
					return ctx.Err()
				})
				offboard := func(cluster mcr.ClusterName, namespace string) {
					key := keyIn(namespace, string(cluster))
					p.offboarding.start(&record{name: cluster, key: key, reason: fleetv1alpha1.ReasonUnenrolled, conn: conn}, logr.Discard())
				}
				places := lanePlaces(p.o.MaxConcurrentReconciles)[laneOffboard] / 2
				for i := range 4 * places {
					offboard(mcr.ClusterName(fmt.Sprint(i)), "slow")
				}
				synctest.Wait() // Those come first.
				offboard("live", tc.namespace)
				p.life.running.Wait()
				if waited > tc.within {
					t.Errorf("%s want it offboarded within %s, got %s", tc.reason, tc.within, waited)
				}
			})
		})
	}
}
