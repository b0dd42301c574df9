// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// panics counts and logs panics while handling a cluster's data.
type panics struct {
	metrics *metrics
	records *records
}

// guard makes the guard for one connection to a cluster. It notes the first panic and requeues the cluster. Only the
// first is logged: later panics of the same connection most likely have the same cause.
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

// count counts a panic of an enrolled cluster. For one that is not, a late request could re-create a series that
// nothing deletes.
func (p *panics) count(r *record) {
	p.records.mu.RLock()
	defer p.records.mu.RUnlock()
	if p.records.byKey[r.key] == r {
		p.metrics.panicCounter(r.name).Inc()
	}
}
