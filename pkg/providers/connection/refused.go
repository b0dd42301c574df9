// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
)

// refusalDuration is how long a refusal is reported. It is longer than any back-off before the same request is
// repeated, so that the condition does not flap.
const refusalDuration = 10 * time.Minute

// exceededLimit returns the metric label value for a refusal.
func exceededLimit(err error) string {
	if refused, ok := errors.AsType[*limits.Error](err); ok {
		return string(refused.Limit)
	}
	return "Memory"
}

// answerRefused notes and counts a refused response of an engaged cluster.
func (v *view) answerRefused(name mcr.ClusterName, err error) {
	v.beyondLimits(name, err, true)
}

// eventsDelayed notes that events of an engaged cluster are read late. Another metric measures the delay.
func (v *view) eventsDelayed(name mcr.ClusterName, err error) {
	v.beyondLimits(name, err, false)
}

// beyondLimits notes that an engaged cluster exceeds a limit. The first of several reasons is reported until it has not
// been true for a while.
func (v *view) beyondLimits(name mcr.ClusterName, err error, count bool) {
	why := probe.Refusal(err)
	if why == nil {
		return
	}
	v.mu.Lock()
	if _, engaged := v.engaged[name]; !engaged {
		v.mu.Unlock()
		return // The state already reports why a cluster is not connected.
	}
	if count {
		v.metrics.refused.WithLabelValues(metric.ClusterValues(name, exceededLimit(err))...).Inc()
	}
	now, said := v.clock.Now(), Refusal{why.Reason, why.Message}
	old := v.refusals[name]
	if old.Refusal == said || old.Reason == "" || now.Sub(old.at) >= refusalDuration {
		v.refusals[name] = datedRefusal{said, now}
	}
	subscribers, changed := v.republishLocked(name)
	v.mu.Unlock()
	if changed {
		notify(subscribers, name)
	}
}

// forgetRefusal clears a refusal that has not been true for a while.
func (v *view) forgetRefusal(name mcr.ClusterName, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r, ok := v.refusals[name]; ok && now.Sub(r.at) >= refusalDuration {
		delete(v.refusals, name) // The probing reconcile publishes it.
	}
}

// republishLocked updates a cluster's refusal for readers, and returns the subscribers to notify.
func (v *view) republishLocked(name mcr.ClusterName) ([]func(mcr.ClusterName), bool) {
	c, visible := v.clusters[name]
	if said := v.refusals[name].Refusal; visible && c.Refused != said {
		c.Refused = said
		v.clusters[name] = c
		return v.subscribers, true
	}
	return nil, false
}
