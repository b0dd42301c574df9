// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
)

// refusalLasts is for how long a refusal is told of. It is longer than any back-off after which the same is asked for
// again, so that what is told does not come and go.
const refusalLasts = 10 * time.Minute

// unsyncedAfter is how long a kind of a connected cluster may be without being synced before that is told.
const unsyncedAfter = 2 * time.Minute

// limitOf is the value of the metrics' label for a refusal.
func limitOf(err error) string {
	var refused *bounded.Error
	if errors.As(err, &refused) {
		return string(refused.Limit)
	}
	return "Memory"
}

// answerRefused notes and counts that an answer of an engaged cluster was refused.
func (p *Provider) answerRefused(name mcr.ClusterName, err error) {
	p.beyondLimits(name, err, true)
}

// eventsDelayed notes that events of an engaged cluster are read late. How late is another metric's affair.
func (p *Provider) eventsDelayed(name mcr.ClusterName, err error) {
	p.beyondLimits(name, err, false)
}

// beyondLimits notes what an engaged cluster has too much of. Of several reasons the first one is told, until it has
// not been true for a while.
func (p *Provider) beyondLimits(name mcr.ClusterName, err error, count bool) {
	why := probe.Refusal(err)
	if why == nil {
		return
	}
	p.mu.Lock()
	if _, engaged := p.engaged[name]; !engaged {
		p.mu.Unlock()
		return // What keeps a cluster from being connected is told by its state.
	}
	if count {
		p.metrics.refused.WithLabelValues(metric.ClusterValues(name, limitOf(err))...).Inc()
	}
	now, said := p.o.Clock.Now(), Refusal{why.Reason, why.Message}
	old := p.refusals[name]
	if old.Refusal == said || old.Reason == "" || now.Sub(old.at) >= refusalLasts {
		p.refusals[name] = datedRefusal{said, now}
	}
	subscribers, changed := p.republishLocked(name)
	p.mu.Unlock()
	if changed {
		notify(subscribers, name)
	}
}

// forgetRefusal ends what is told of a refusal that has not been true for a while.
func (p *Provider) forgetRefusal(name mcr.ClusterName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.refusals[name]; ok && now.Sub(r.at) >= refusalLasts {
		delete(p.refusals, name) // The reconcile that probed publishes it.
	}
}

// republishLocked brings what readers see of the refusals of a cluster up to date, and returns whom to tell of it.
func (p *Provider) republishLocked(name mcr.ClusterName) ([]func(mcr.ClusterName), bool) {
	c, visible := p.published[name]
	if said := p.refusals[name].Refusal; visible && c.Refused != said {
		c.Refused = said
		p.published[name] = c
		return p.subscribers, true
	}
	return nil, false
}
