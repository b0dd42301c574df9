// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
)

// panicWeight is how many failures to connect a panic counts as. What made the manager panic is likely to be there
// still, and each attempt lists everything in the cluster again.
const panicWeight = 3

// panicFailure is the failure of a connection that was given up after a panic. What was panicked with is in the log
// alone, since it can hold text of the cluster.
func panicFailure() *reason.Failure {
	return reason.New(ReasonPanicked, "The manager failed unexpectedly while it handled the cluster; see its log")
}

// newGuard makes the guard of what handles a cluster through one connection. It notes the first panic, and has the
// cluster reconciled. Only that one is logged: what follows until the connection has ended is most likely the same.
func (p *Provider) newGuard(ctx context.Context, r *record, first func() bool) *guard.Guard {
	logger := log.FromContext(ctx)
	return guard.New(func(what *guard.Panic) {
		p.countPanic(r)
		if first() {
			logger.Error(what, "Recovered from a panic, the cluster is disconnected", "stack", string(what.Stack))
			p.wake(r.key)
		}
	})
}

// countPanic counts a panic of a cluster that is enrolled. What is still read of one that is not, as by a request that
// nobody has ended, would bring a series back which nobody deletes any more.
func (p *Provider) countPanic(r *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records.byKey[r.key] == r {
		p.metrics.panicsOf(r.name).Inc()
	}
}

// performGuarded is perform, whose panics cost the cluster its connection, or are a failed attempt to connect.
func (p *Provider) performGuarded(ctx context.Context, r *record, d decision) error {
	noted := &atomic.Bool{}
	guarded := p.newGuard(ctx, r, func() bool { return noted.CompareAndSwap(false, true) })
	if r.conn != nil {
		guarded = r.conn.transport.Guard()
	}
	err := guarded.Run("connecting", func() error { return p.perform(ctx, r, d) })
	var what *guard.Panic
	if !errors.As(err, &what) {
		return err
	}
	if r.pending != nil {
		r.pending.close(panicFailure())
		r.pending = nil
	}
	switch {
	case r.conn != nil:
		r.conn.transport.SetPanicked() // It may have been made meanwhile.
	case r.state == StateConnecting:
		_, _, err := p.step(ctx, r, eventConnectFailed, panicFailure())
		return err
	default:
		p.schedule(r, actionScheduleRetry)
	}
	return nil
}
