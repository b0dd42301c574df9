// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Collector collects what is known of the Applications of every cluster, for the hub. Its methods never block, and cost
// the same however many Applications there are; what is summed up is added up when it is written, which is at most once
// in a second for each cluster.
type Collector struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	clusters map[mcr.ClusterName]*rolledUp
	wake     func(mcr.ClusterName)
}

// rolledUp is what is known of the Applications of one cluster.
type rolledUp struct {
	// engaged is whether an instance of the cluster is, complete whether all of its Applications were observed. since is
	// when the first of the two last changed. reached is whether it ever was engaged by this process.
	engaged, complete, reached bool
	since                      time.Time

	// blocked is why its Applications are not watched, if they are not.
	blocked *condition.Problem

	// applications are those that were observed, each in a round: an instance that takes another one's place begins a
	// round, and what it has not shown at the end of it is gone.
	applications map[types.NamespacedName]roundSummary
	round        uint64

	// lastKnown is what was true when it was complete for the last time.
	lastKnown *fleetv1alpha1.LastKnownApplications
}

type roundSummary struct {
	Summary

	round uint64
}

func newRollup(c clock.PassiveClock) *Collector {
	return &Collector{clock: c, clusters: map[mcr.ClusterName]*rolledUp{}}
}

// cluster returns what is known of a cluster, from now on if nothing is. The caller holds mu.
func (r *Collector) cluster(name mcr.ClusterName) *rolledUp {
	c, ok := r.clusters[name]
	if !ok {
		c = &rolledUp{since: r.clock.Now(), applications: map[types.NamespacedName]roundSummary{}}
		r.clusters[name] = c
	}
	return c
}

// change changes what is known of a cluster, and has it written if the function says that it is news. What comes when
// the cluster was dropped is about one that is gone.
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

// onChange has a function called with the name of each cluster of which something else is known. It must not block.
func (r *Collector) onChange(wake func(mcr.ClusterName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
}

// Engaged notes that an instance of a cluster was engaged, also beside another one that it takes the place of.
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

// expect begins to keep what is known of a cluster.
func (r *Collector) expect(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster(cluster)
}

// IsComplete is whether every Application of a cluster was observed.
func (r *Collector) IsComplete(cluster mcr.ClusterName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, known := r.clusters[cluster]
	return known && c.complete
}

// Observe notes what an Application of an engaged cluster is like.
func (r *Collector) Observe(cluster mcr.ClusterName, key types.NamespacedName, s Summary) {
	r.change(cluster, func(c *rolledUp) bool {
		if !c.engaged {
			return false // It was looked at until after its cluster had gone.
		}
		before, known := c.applications[key]
		c.applications[key] = roundSummary{s, c.round}
		return c.complete && (!known || before.Summary != s)
	})
}

// Offer notes what an Application of an engaged cluster was like when somebody looked last. What was observed since is
// newer.
func (r *Collector) Offer(cluster mcr.ClusterName, key types.NamespacedName, s Summary) {
	r.change(cluster, func(c *rolledUp) bool {
		if before, known := c.applications[key]; c.engaged && (!known || before.round != c.round) {
			c.applications[key] = roundSummary{s, c.round}
		}
		return false // Nothing is told before all of them are known.
	})
}

// Forget notes that an Application is gone.
func (r *Collector) Forget(cluster mcr.ClusterName, key types.NamespacedName) {
	r.change(cluster, func(c *rolledUp) bool {
		_, known := c.applications[key]
		delete(c.applications, key)
		return known && c.complete
	})
}

// Synced notes that every Application of an engaged cluster was observed since it was engaged. What was not is gone.
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

// Unwatched notes that a cluster is there, and its Applications are not watched, or not any more. The reason is one
// of those of the condition Current of an ApplicationReport.
func (r *Collector) Unwatched(cluster mcr.ClusterName, why condition.Problem) {
	r.expect(cluster)
	r.change(cluster, func(c *rolledUp) bool {
		if c.engaged && c.blocked != nil && *c.blocked == why {
			return false
		}
		c.keep()
		clear(c.applications)
		c.engaged, c.complete, c.reached, c.blocked = true, false, true, &why
		c.round++
		return true
	})
}

// Disengaged notes that the last instance of a cluster is gone.
func (r *Collector) Disengaged(cluster mcr.ClusterName) {
	r.change(cluster, func(c *rolledUp) bool {
		c.keep()
		clear(c.applications)
		c.engaged, c.complete, c.blocked = false, false, nil
		c.since = r.clock.Now()
		return true
	})
}

// drop forgets a cluster that is not enrolled any more. One that is engaged is, by now.
func (r *Collector) drop(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, known := r.clusters[cluster]; known && !c.engaged {
		delete(r.clusters, cluster)
	}
}

// replaced forgets what was known of a cluster before another object took the place of the one that enrolled it.
func (r *Collector) replaced(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, known := r.clusters[cluster]; known {
		c.lastKnown, c.reached = nil, c.engaged
	}
}

// keep notes what is true, before it may not be any more.
func (c *rolledUp) keep() {
	if c.complete {
		t := totalOf(c.applications)
		c.lastKnown = &fleetv1alpha1.LastKnownApplications{Applications: t.applications, Components: t.components}
	}
}

// rollupView is what is known of a cluster at a time.
type rollupView struct {
	engaged, complete, reached bool
	since                      time.Time
	blocked                    *condition.Problem
	lastKnown                  *fleetv1alpha1.LastKnownApplications

	// totals are of all Applications, if the view is complete.
	totals totals
}

// view returns what is known of a cluster.
func (r *Collector) view(cluster mcr.ClusterName) rollupView {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cluster(cluster)
	v := rollupView{
		engaged: c.engaged, complete: c.complete, reached: c.reached, since: c.since, blocked: c.blocked,
		lastKnown: c.lastKnown.DeepCopy(),
	}
	if c.complete {
		v.totals = totalOf(c.applications)
	}
	return v
}
