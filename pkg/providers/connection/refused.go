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

// limitOf is the value of the metrics' label for a refusal.
func limitOf(err error) string {
	var refused *bounded.Error
	if errors.As(err, &refused) {
		return string(refused.Limit)
	}
	return "Memory"
}

// answerRefused notes and counts that an answer of an engaged cluster was refused.
func (v *view) answerRefused(name mcr.ClusterName, err error) {
	v.beyondLimits(name, err, true)
}

// eventsDelayed notes that events of an engaged cluster are read late. How late is another metric's affair.
func (v *view) eventsDelayed(name mcr.ClusterName, err error) {
	v.beyondLimits(name, err, false)
}

// beyondLimits notes what an engaged cluster has too much of. Of several reasons the first one is told, until it has
// not been true for a while.
func (v *view) beyondLimits(name mcr.ClusterName, err error, count bool) {
	why := probe.Refusal(err)
	if why == nil {
		return
	}
	v.mu.Lock()
	if _, engaged := v.engaged[name]; !engaged {
		v.mu.Unlock()
		return // What keeps a cluster from being connected is told by its state.
	}
	if count {
		v.metrics.refused.WithLabelValues(metric.ClusterValues(name, limitOf(err))...).Inc()
	}
	now, said := v.clock.Now(), Refusal{why.Reason, why.Message}
	old := v.refusals[name]
	if old.Refusal == said || old.Reason == "" || now.Sub(old.at) >= refusalLasts {
		v.refusals[name] = datedRefusal{said, now}
	}
	subscribers, changed := v.republishLocked(name)
	v.mu.Unlock()
	if changed {
		notify(subscribers, name)
	}
}

// forgetRefusal ends what is told of a refusal that has not been true for a while.
func (v *view) forgetRefusal(name mcr.ClusterName, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r, ok := v.refusals[name]; ok && now.Sub(r.at) >= refusalLasts {
		delete(v.refusals, name) // The reconcile that probed publishes it.
	}
}

// republishLocked brings what readers see of the refusals of a cluster up to date, and returns whom to tell of it.
func (v *view) republishLocked(name mcr.ClusterName) ([]func(mcr.ClusterName), bool) {
	c, visible := v.clusters[name]
	if said := v.refusals[name].Refusal; visible && c.Refused != said {
		c.Refused = said
		v.clusters[name] = c
		return v.subscribers, true
	}
	return nil, false
}
