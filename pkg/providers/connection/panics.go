// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// panics is what is told of panics while something of a cluster is handled.
type panics struct {
	metrics *metrics
	records *records
}

// guard makes the guard of what handles a cluster through one connection. It notes the first panic, and has the
// cluster reconciled. Only that one is logged: what follows until the connection has ended is most likely the same.
func (p *panics) guard(ctx context.Context, r *record, first func() bool) *guard.Guard {
	logger := log.FromContext(ctx)
	return guard.New(func(what *guard.Panic) {
		p.count(r)
		if first() {
			logger.Error(what, "Recovered from a panic, the cluster is disconnected", "stack", string(what.Stack))
			p.records.wake(r.key)
		}
	})
}

// count counts a panic of a cluster that is enrolled. What is still read of one that is not, as by a request that
// nobody has ended, would bring a series back which nobody deletes any more.
func (p *panics) count(r *record) {
	p.records.mu.RLock()
	defer p.records.mu.RUnlock()
	if p.records.byKey[r.key] == r {
		p.metrics.panicsOf(r.name).Inc()
	}
}
