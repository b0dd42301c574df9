// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// engage makes the pending connection the one that serves.
func (p *Provider) engage(r *record) (event, *reason.Failure) {
	old, conn := r.conn, r.pending
	r.conn, r.pending = conn, nil
	r.probeFailures, r.probedAt = 0, time.Time{}
	p.view.engage(r.name, conn)

	p.metrics.connectedBy(r.name, r.cause)
	r.cause = causeProbe
	err := conn.Guard().Run("engaging", func() error { return p.aware.Engage(conn.ctx, r.name, conn) })
	if old != nil {
		p.handOver(old, conn)
	}
	var panicked *guard.Panic
	switch {
	case errors.As(err, &panicked):
		return eventLost, panicFailure()
	case err != nil:
		return eventLost, reason.New(ReasonEngageFailed, fmt.Sprintf("A controller refused the cluster: %s", err))
	}
	return "", nil
}

// openGate lets queued work and writes through. A new connection lets them through from the start.
func (p *Provider) openGate(r *record) {
	if r.pending == nil {
		r.conn.transport.Allow(transport.Open)
	}
	p.o.Gate.Open(r.name)
}

// handOver ends an old connection as soon as every watch of the new one has delivered what there is. Until then, both
// deliver: an event may come twice, and none is lost.
func (p *Provider) handOver(old, conn *connected) {
	p.running.Go(func() {
		defer old.close(errSucceeded)
		_ = conn.Guard().Run("the hand-over", func() error {
			ctx, cancel := context.WithTimeout(conn.ctx, p.o.HandoverTimeout)
			defer cancel()
			return p.o.Gate.WaitForSync(ctx, conn.name, conn) // In any case, it is over then.
		})
	})
}

// disengage ends the connection.
func (p *Provider) disengage(r *record, ev event) {
	conn := r.conn
	if conn == nil {
		return
	}
	r.conn, r.next, r.probeFailures, r.health, r.unsynced = nil, nil, 0, metav1.ConditionUnknown, nil
	r.cause = causeReEnroll
	if ev == eventLost {
		r.cause = causeProbe
	}
	p.view.disengage(r.name)
	conn.close(reason.New(r.reason, fmt.Sprintf("cluster %q was disconnected: %s: %s", r.name, r.reason, r.message)))
	p.o.Gate.Forget(r.name)
}

// startDrain closes the gate before it returns, then waits for work in flight, and takes leave, in the background: with
// many clusters to drain at once, workers would all wait.
func (p *Provider) startDrain(r *record, logger logr.Logger) {
	p.o.Gate.Close(r.name)
	ctx, cancel := context.WithCancel(p.ctx) //nolint:gosec // cancel is called when the drain ends.
	d := &drain{cancel: cancel}
	r.drain = d
	name, key, forGood := r.name, r.key, leavesForGood(r.reason)
	conn, uid := r.conn, r.uid
	p.running.Go(func() {
		_ = conn.Guard().Do("leaving a cluster", func() {
			p.drain(ctx, name)
			if !forGood || !p.admitLeave(ctx, conn, uid, logger) {
				return
			}
			p.leave(ctx, name, logger)
			if why := p.releaseHub(ctx, conn, conn.transport.Token()); why != nil {
				logger.Error(why, "Left a cluster without releasing it to other hubs")
			}
		})
		// However it ended, also by a panic, the drain is over and the cluster is disengaged.
		cancel()
		d.done.Store(true)
		p.records.wake(key)
	})
}

// drain waits for work in flight. Whether it is done or the time is over, the cluster is disengaged.
func (p *Provider) drain(ctx context.Context, name mcr.ClusterName) {
	ctx, cancel := context.WithTimeout(ctx, p.o.DrainTimeout)
	defer cancel()
	_ = p.o.Gate.WaitIdle(ctx, name)
}

func (p *Provider) cancelDrain(r *record) {
	if r.drain != nil {
		r.drain.cancel()
		r.drain = nil
	}
}

// release forgets an enrolment.
func (p *Provider) release(r *record) {
	p.records.remove(r)
	r.throttle.Retire()
	p.view.withdraw(r.name)
	p.metrics.forget(r.name)
	p.releaseClaim(r.key)
}

// releaseClaim gives up the hold on a cluster, and has those tried again that were refused because of it.
func (p *Provider) releaseClaim(k Key) {
	p.records.retry(p.arbiter.Release(k))
}
