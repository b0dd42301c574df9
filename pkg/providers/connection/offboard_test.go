// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

func TestLeavesForGood(t *testing.T) {
	for reason, want := range map[string]bool{
		fleetv1alpha1.ReasonUnenrolled: true, fleetv1alpha1.ReasonNamespaceNotAllowed: true, fleetv1alpha1.ReasonClassFull: true,
		fleetv1alpha1.ReasonPaused: false, fleetv1alpha1.ReasonNotReady: false, fleetv1alpha1.ReasonNoCredentials: false, fleetv1alpha1.ReasonDuplicateCluster: false, fleetv1alpha1.ReasonBadIdentifier: false,
	} {
		if got := endsForGood(reason); got != want {
			t.Errorf("%s: want %v, got %v", reason, want, got)
		}
	}
}

// offboarder has an OffboardFunc that writes to the cluster, and then waits until it may proceed or has to stop.
type offboarder struct {
	h              *harness
	called, wrote  atomic.Int32
	stopped        atomic.Int32
	proceed        chan struct{}
	writeInCluster string
}

func (l *offboarder) offboard(ctx context.Context, name mcr.ClusterName) error {
	l.called.Add(1)
	cl, err := l.h.Get(ctx, name)
	if err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: l.writeInCluster}}
	if err := cl.GetClient().Create(ctx, account); err != nil {
		if ctx.Err() != nil { // It had to stop before the write was done.
			l.stopped.Add(1)
		}
		return err
	}
	l.wrote.Add(1)
	select {
	case <-l.proceed:
		return nil
	case <-ctx.Done():
		l.stopped.Add(1)
		return context.Cause(ctx)
	}
}

func newOffboarder(t *testing.T, src *fakeSource, change ...func(*Options)) *offboarder {
	t.Helper()
	l := &offboarder{proceed: make(chan struct{}), writeInCluster: "offboarded-"}
	l.h = newHarnessWith(t, src, func(p *Provider) { p.OnOffboard(l.offboard) }, change...)
	return l
}

func TestLeaveIsTakenBeforeTheConnectionEnds(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newOffboarder(t, src)
	src.set("a", f.kubeconfig(t, s.token(t)))
	l.h.waitFor(t, "a", StateConnected, "")

	src.remove("a")
	connectiontest.Eventually(t, "it is being offboarded, and the cluster can be written to", func() bool { return l.wrote.Load() == 1 })
	// Offboarding has its own goroutine, which may have written before the state is published. The state stays until
	// proceed is closed.
	l.h.waitFor(t, "a", StateDraining, fleetv1alpha1.ReasonUnenrolled)
	if l.h.gate.IsOpen(clusterName("a")) {
		t.Error("want no work of the cluster to run meanwhile")
	}
	close(l.proceed)
	connectiontest.Eventually(t, "it is gone", func() bool { _, ok := l.h.Lookup(clusterName("a")); return !ok })
	if got := l.called.Load(); got != 1 {
		t.Errorf("want it to be offboarded once, got %d", got)
	}
}

func TestLeaveIsCalledOffWhenTheEnrolmentComesBack(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newOffboarder(t, src)
	kubeconfig := f.kubeconfig(t, s.token(t))
	src.set("a", kubeconfig)
	l.h.waitFor(t, "a", StateConnected, "")
	src.remove("a")
	connectiontest.Eventually(t, "it is being offboarded", func() bool { return l.wrote.Load() == 1 })
	src.set("a", kubeconfig)
	l.h.waitFor(t, "a", StateConnected, "")
	connectiontest.Eventually(t, "it is called off", func() bool { return l.stopped.Load() == 1 })
	if got := len(l.h.engagements("a")); got != 1 {
		t.Errorf("want the connection to go on, got %d", got)
	}
}

func TestLeaveIsBounded(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newOffboarder(t, src, func(o *Options) { o.OffboardTimeout = 300 * time.Millisecond })
	src.set("a", f.kubeconfig(t, s.token(t)))
	l.h.waitFor(t, "a", StateConnected, "")
	src.remove("a")
	connectiontest.Eventually(t, "it is gone although offboarding was not done", func() bool {
		_, ok := l.h.Lookup(clusterName("a"))
		return !ok && l.stopped.Load() == 1
	})
}

func TestPausedClusterIsNotLeft(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newOffboarder(t, src)
	src.set("a", f.kubeconfig(t, s.token(t)))
	l.h.waitFor(t, "a", StateConnected, "")
	src.change("a", func(e *Enrolment) { e.Paused = true })
	l.h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonPaused)
	if got := l.called.Load(); got != 0 {
		t.Errorf("want a pause to undo nothing, got %d", got)
	}
}
