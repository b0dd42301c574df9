// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// engager engages controllers with connected clusters, and disengages them.
type engager struct {
	o       *Options
	view    *view
	metrics *metrics
	life    *lifetime
	aware   mcr.Aware // set by Start, before the first reconcile
}

// engage makes the pending connection the active one.
func (e *engager) engage(r *record) (lifecycle.Event, *condition.Error) {
	old, conn := r.conn, r.pending
	r.conn, r.pending = conn, nil
	r.probeFailures, r.probedAt = 0, time.Time{}
	e.view.engage(r.name, conn)

	e.metrics.connectedBy(r.name, r.cause)
	r.cause = causeProbe
	err := conn.Guard().Run("engaging", func() error { return e.aware.Engage(conn.ctx, r.name, conn) })
	if old != nil {
		e.handOver(old, conn)
	}
	var panicked *guard.Panic
	switch {
	case errors.As(err, &panicked):
		return lifecycle.EventLost, panicFailure()
	case err != nil:
		return lifecycle.EventLost, condition.NewError(fleetv1alpha1.ReasonEngageFailed, fmt.Sprintf("A controller refused the cluster: %s", err))
	}
	return "", nil
}

// openGate lets queued work and writes through. A new connection starts open.
func (e *engager) openGate(r *record) {
	if r.pending == nil {
		r.conn.transport.Allow(transport.Open)
	}
	if !r.unenrolled { // One that is connected to be offboarded has no other work.
		e.o.Gate.Open(r.name)
	}
}

// closeGate holds queued work, and makes writes fail at once.
func (e *engager) closeGate(r *record) {
	r.conn.transport.Allow(transport.ReadOnly)
	e.o.Gate.Close(r.name)
}

// handOver ends an old connection once every watch of the new one is synced. Until then both deliver: events may be
// duplicated, but none is lost.
func (e *engager) handOver(old, conn *connected) {
	e.life.running.Go(func() {
		defer conn.replaced()
		defer old.close(errSucceeded)
		_ = conn.Guard().Run("the hand-over", func() error {
			ctx, cancel := context.WithTimeout(conn.ctx, e.o.HandoverTimeout)
			defer cancel()
			return e.o.Gate.WaitForSync(ctx, conn.name, conn) // Close the old one in any case.
		})
	})
}

// disengage ends the connection.
func (e *engager) disengage(r *record, ev lifecycle.Event) {
	conn := r.conn
	if conn == nil {
		return
	}
	r.conn, r.next, r.probeFailures, r.health, r.unsynced = nil, nil, 0, metav1.ConditionUnknown, nil
	r.cause = causeReEnroll
	if ev == lifecycle.EventLost {
		r.cause = causeProbe
	}
	e.view.disengage(r.name)
	conn.close(condition.NewError(r.reason, fmt.Sprintf("cluster %q was disconnected: %s: %s", r.name, r.reason, r.message)))
	e.o.Gate.Forget(r.name)
}
