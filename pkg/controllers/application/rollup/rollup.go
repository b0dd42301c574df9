// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Collector collects the state of every cluster's Applications for the hub. Its methods never block, and the cost of
// recording does not depend on the number of Applications. Totals are computed on write, at most once a second per
// cluster, and on scrape.
type Collector struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	clusters map[mcr.ClusterName]*rolledUp
	wake     func(mcr.ClusterName)
}

// rolledUp is the known state of one cluster's Applications.
type rolledUp struct {
	// engaged reports whether an instance of the cluster is engaged, complete whether all of its Applications were
	// observed. since is when an instance was last engaged, the last one disengaged, or the cluster connected. reached
	// reports whether this process ever engaged one.
	engaged, complete, reached bool
	connected                  bool
	since                      time.Time

	// blocked is why its Applications are not watched; nil if they are.
	blocked *condition.Error

	// applications are the observed ones, each with a round: a replacing instance starts a new round, and Applications not
	// observed by its end are gone.
	applications map[types.NamespacedName]roundSummary
	round        uint64

	// lastKnown is the state when it was last complete.
	lastKnown *Totals
}

type roundSummary struct {
	Summary

	round uint64
}

// NewCollector returns an empty Collector.
func NewCollector(c clock.PassiveClock) *Collector {
	return &Collector{clock: c, clusters: map[mcr.ClusterName]*rolledUp{}}
}

// cluster returns the state of a cluster, and creates it if needed. The caller holds mu.
func (r *Collector) cluster(name mcr.ClusterName) *rolledUp {
	c, ok := r.clusters[name]
	if !ok {
		c = &rolledUp{applications: map[types.NamespacedName]roundSummary{}}
		r.clusters[name] = c
	}
	return c
}

// change updates the state of a cluster, and triggers a write if the function reports a change. Changes to a dropped
// cluster are ignored.
func (r *Collector) change(name mcr.ClusterName, change func(c *rolledUp) (news bool)) {
	r.mu.Lock()
	c, known := r.clusters[name]
	news := known && change(c)
	wake := r.wake
	r.mu.Unlock()
	if news && wake != nil {
		wake(name)
	}
}

// onChange registers a function called with the name of each changed cluster. It must not block.
func (r *Collector) onChange(wake func(mcr.ClusterName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
}

// Engaged records that an instance of a cluster was engaged, also as a replacement of another one.
func (r *Collector) Engaged(cluster mcr.ClusterName) {
	r.expect(cluster)
	r.change(cluster, func(c *rolledUp) bool {
		c.keep()
		c.engaged, c.complete, c.reached, c.blocked = true, false, true, nil
		c.since = r.clock.Now()
		c.round++
		return true
	})
}

// expect starts keeping the state of a cluster.
func (r *Collector) expect(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster(cluster)
}

// IsComplete reports whether every Application of a cluster was observed.
func (r *Collector) IsComplete(cluster mcr.ClusterName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, known := r.clusters[cluster]
	return known && c.complete
}

// Observe records the state of an Application of an engaged cluster.
func (r *Collector) Observe(cluster mcr.ClusterName, key types.NamespacedName, s Summary) {
	r.change(cluster, func(c *rolledUp) bool {
		if !c.engaged {
			return false // A reconcile was still running when its cluster was dropped.
		}
		before, known := c.applications[key]
		c.applications[key] = roundSummary{s, c.round}
		return c.complete && (!known || before.Summary != s)
	})
}

// Offer records the stored state of an Application of an engaged cluster. A state observed since is newer and is kept.
func (r *Collector) Offer(cluster mcr.ClusterName, key types.NamespacedName, s Summary) {
	r.change(cluster, func(c *rolledUp) bool {
		if before, known := c.applications[key]; c.engaged && (!known || before.round != c.round) {
			c.applications[key] = roundSummary{s, c.round}
		}
		return false // Nothing is reported before all of them are known.
	})
}

// Forget records that an Application was deleted.
func (r *Collector) Forget(cluster mcr.ClusterName, key types.NamespacedName) {
	r.change(cluster, func(c *rolledUp) bool {
		_, known := c.applications[key]
		delete(c.applications, key)
		return known && c.complete
	})
}

// Synced records that every Application of an engaged cluster was observed since it was engaged. All others are gone.
func (r *Collector) Synced(cluster mcr.ClusterName) {
	r.change(cluster, func(c *rolledUp) bool {
		if !c.engaged || c.complete {
			return false
		}
		maps.DeleteFunc(c.applications, func(_ types.NamespacedName, s roundSummary) bool { return s.round != c.round })
		c.complete, c.blocked = true, nil
		return true
	})
}

// Unwatched records that a cluster exists, but its Applications are not watched, or no longer. The reason is one of
// those of the condition Current of an ApplicationReport.
func (r *Collector) Unwatched(cluster mcr.ClusterName, why condition.Error) {
	r.expect(cluster)
	r.change(cluster, func(c *rolledUp) bool {
		c.keep()
		clear(c.applications) // Also what a late reconcile observed.
		if c.engaged && c.blocked != nil && *c.blocked == why {
			return false
		}
		c.engaged, c.complete, c.reached, c.blocked = true, false, true, &why
		c.round++
		return true
	})
}

// Disengaged records that the last instance of a cluster is gone.
func (r *Collector) Disengaged(cluster mcr.ClusterName) {
	r.change(cluster, func(c *rolledUp) bool {
		c.keep()
		clear(c.applications)
		c.engaged, c.complete, c.blocked = false, false, nil
		c.since = r.clock.Now()
		return true
	})
}

// drop forgets a cluster that is no longer enrolled, unless it is engaged and thus enrolled again.
func (r *Collector) drop(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, known := r.clusters[cluster]; known && !c.engaged {
		delete(r.clusters, cluster)
	}
}

// replaced forgets the state of a cluster when another object now enrols it.
func (r *Collector) replaced(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, known := r.clusters[cluster]; known {
		c.lastKnown, c.reached = nil, c.engaged
	}
}

// list returns a copy of the Applications.
func (c *rolledUp) list() Applications {
	list := make(Applications, 0, len(c.applications))
	for key, s := range c.applications {
		list = append(list, Application{key, s.Summary})
	}
	return list
}

// keep saves the current state before it may become outdated.
func (c *rolledUp) keep() {
	if c.complete {
		c.lastKnown = new(c.list().Totals())
	}
}

// rollupView is a snapshot of a cluster's state.
type rollupView struct {
	engaged, complete, reached bool
	since                      time.Time
	blocked                    *condition.Error
	lastKnown                  *Totals

	// totals cover all Applications, if the view is complete, and worst has the worst of them; more reports whether there
	// are more.
	totals Totals
	worst  []fleetv1alpha1.WorstApplication
	more   bool
}

// view returns the state of a cluster. It notes when the cluster is connected.
func (r *Collector) view(cluster mcr.ClusterName, connected bool) rollupView {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cluster(cluster)
	if connected && !c.connected {
		c.since = r.clock.Now()
	}
	c.connected = connected
	v := rollupView{
		engaged: c.engaged, complete: c.complete, reached: c.reached, since: c.since, blocked: c.blocked,
		lastKnown: c.lastKnown.DeepCopy(),
	}
	if c.complete {
		list := c.list()
		v.totals = list.Totals()
		v.worst, v.more = list.worst()
	}
	return v
}

// Each calls fn with a copy of the Applications of each cluster that has any. It holds the lock only while it copies
// those of one cluster.
func (r *Collector) Each(fn func(cluster mcr.ClusterName, applications Applications)) {
	r.mu.Lock()
	names := slices.Collect(maps.Keys(r.clusters))
	r.mu.Unlock()
	for _, name := range names {
		r.mu.Lock()
		var applications Applications
		if c, known := r.clusters[name]; known {
			applications = c.list()
		}
		r.mu.Unlock()
		if len(applications) > 0 {
			fn(name, applications)
		}
	}
}
