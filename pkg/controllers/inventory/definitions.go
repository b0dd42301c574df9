// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// publishInterval is the minimum interval between publications about the definitions of one cluster. The first change
// is published at once. The owner of a workload cluster can have a definition be refused and served in turn, as fast as
// they can write, and each change would be a write to the hub.
const publishInterval = 2 * time.Second

// Definitions collects which definitions could not be put into which clusters, to be published in the condition
// KindsServed. The controllers that put definitions into clusters report to it; it never blocks. It is empty when made
// with new.
type Definitions struct {
	mu      sync.Mutex
	refused map[mcr.ClusterName]map[string]string
	changed func(mcr.ClusterName)

	// published is what was last published about clusters with refused definitions.
	published map[mcr.ClusterName]publishedDefinitions
}

// publishedDefinitions are the refused definitions of a cluster as last published.
type publishedDefinitions struct {
	refused map[string]string
	at      time.Time
}

// left is the remaining time until the next publication.
func (p publishedDefinitions) left(now time.Time) time.Duration {
	return max(0, min(p.at.Add(publishInterval).Sub(now), publishInterval))
}

// Report is an install.Reporter. Only the reason of a problem is used here; the message is for queries about one
// definition.
func (d *Definitions) Report(cluster mcr.ClusterName, crd string, _ bool, problem *condition.Error) {
	reason := ""
	if problem != nil {
		reason = problem.Reason
	}
	d.set(cluster, crd, reason)
}

// forgetCluster drops a cluster that left the fleet. Its reporters may be gone as well, and its refusals must not be
// attributed to the next cluster of that name.
func (d *Definitions) forgetCluster(cluster mcr.ClusterName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.refused, cluster)
	delete(d.published, cluster)
}

// set records why a definition is refused; no reason means that it is not.
func (d *Definitions) set(cluster mcr.ClusterName, crd, reason string) {
	d.mu.Lock()
	if d.refused[cluster][crd] == reason {
		d.mu.Unlock()
		return
	}
	switch {
	case reason == "":
		delete(d.refused[cluster], crd)
		if len(d.refused[cluster]) == 0 {
			delete(d.refused, cluster)
		}
	case d.refused[cluster] == nil:
		if d.refused == nil {
			d.refused = map[mcr.ClusterName]map[string]string{}
		}
		d.refused[cluster] = map[string]string{crd: reason}
	default:
		d.refused[cluster][crd] = reason
	}
	changed := d.changed
	d.mu.Unlock()
	if changed != nil {
		changed(cluster)
	}
}

// toPublish returns the refused definitions of a cluster that are to be published now, and why each was refused. If
// that is not everything, it returns when to publish the rest.
func (d *Definitions) toPublish(cluster mcr.ClusterName, now time.Time) (refused map[string]string, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.published[cluster]
	left := last.left(now)
	switch {
	case maps.Equal(last.refused, d.refused[cluster]):
		if len(last.refused) == 0 && left == 0 {
			delete(d.published, cluster)
		}
		return maps.Clone(last.refused), 0
	case left > 0:
		return maps.Clone(last.refused), left
	}
	if d.published == nil {
		d.published = map[mcr.ClusterName]publishedDefinitions{}
	}
	d.published[cluster] = publishedDefinitions{refused: maps.Clone(d.refused[cluster]), at: now}
	return maps.Clone(d.refused[cluster]), 0
}

// delay is how long a change reported now waits for publication.
func (d *Definitions) delay(cluster mcr.ClusterName, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.published[cluster].left(now)
}

// source queues each cluster whose definitions change. Earlier reports are read when the cluster is reconciled.
func (d *Definitions) source(c clock.PassiveClock) source.TypedSource[request] {
	return source.TypedFunc[request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changed = func(name mcr.ClusterName) { q.AddAfter(request{Cluster: name}, d.delay(name, c.Now())) }
		return nil
	})
}
