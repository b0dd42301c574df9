// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// newGuard makes the guard of what handles a cluster through one connection. It notes the first panic, and has the
// cluster reconciled. Only that one is logged: what follows until the connection has ended is most likely the same.
func (p *Provider) newGuard(ctx context.Context, r *record, first func() bool) *guard.Guard {
	logger := log.FromContext(ctx)
	return guard.New(func(what *guard.Panic) {
		p.countPanic(r)
		if first() {
			logger.Error(what, "Recovered from a panic, the cluster is disconnected", "stack", string(what.Stack))
			p.records.wake(r.key)
		}
	})
}

// countPanic counts a panic of a cluster that is enrolled. What is still read of one that is not, as by a request that
// nobody has ended, would bring a series back which nobody deletes any more.
func (p *Provider) countPanic(r *record) {
	p.records.mu.RLock()
	defer p.records.mu.RUnlock()
	if p.records.byKey[r.key] == r {
		p.metrics.panicsOf(r.name).Inc()
	}
}
