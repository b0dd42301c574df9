// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"maps"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Definitions collects which definitions of kinds could not be put into which clusters, to be published in the
// condition KindsServed. Whoever puts definitions into clusters reports to it; it never blocks. It is empty when made
// with new.
type Definitions struct {
	mu      sync.Mutex
	refused map[mcr.ClusterName]map[string]string
	changed func(mcr.ClusterName)
}

// DefinitionServed says that the definition is in the cluster.
func (d *Definitions) DefinitionServed(cluster mcr.ClusterName, crd string) {
	d.set(cluster, crd, "")
}

// DefinitionRefused says that the definition cannot be put into the cluster, and why. The message is for whoever asks
// about one definition; the reason is enough here.
func (d *Definitions) DefinitionRefused(cluster mcr.ClusterName, crd, reason, _ string) {
	d.set(cluster, crd, reason)
}

// DefinitionForgotten says that the definition is no longer meant for the cluster, or that the cluster is gone.
func (d *Definitions) DefinitionForgotten(cluster mcr.ClusterName, crd string) {
	d.set(cluster, crd, "")
}

// forgetCluster forgets everything about a cluster that left the fleet. Whoever reported it may be gone as well, and
// what was refused by the cluster that had the name before must not be said of the next.
func (d *Definitions) forgetCluster(cluster mcr.ClusterName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.refused, cluster)
}

// set notes the reason for which a definition is refused; no reason means that it is not.
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

// refusedBy returns the refused definitions of a cluster, and why each of them is.
func (d *Definitions) refusedBy(cluster mcr.ClusterName) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.refused[cluster])
}

// source asks for each cluster whose definitions change. What was reported before is seen when the cluster is.
func (d *Definitions) source() source.TypedSource[request] {
	return source.TypedFunc[request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changed = func(name mcr.ClusterName) { q.Add(request{Cluster: name}) }
		return nil
	})
}
