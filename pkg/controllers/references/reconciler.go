// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/references"
)

// controllerName is the name of the controller in metrics, logs and events.
const controllerName = "references"

// Fleet is a view of the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster that is enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// Classes finds the clusters that a change of a class affects.
	connection.Classes

	// Subscribe registers a function that is called whenever a cluster's state has changed. It must not block.
	Subscribe(fn func(mcr.ClusterName))
}

// workloads are the engaged workload clusters.
type workloads = multicluster.Instances[Request, *workload]

// reconciler resolves the references of objects in workload clusters, and in the hub.
type reconciler struct {
	workloads *workloads
	fleet     Fleet

	// hub is treated as one more cluster if hubClass names a class.
	hub      atomic.Pointer[workload]
	hubClass string

	classes  client.Reader
	resolver *references.Resolver
	metrics  *Metrics
	clock    clock.WithTicker
	logs     func(*Request) logr.Logger
}

// loggerFor names a cluster in log lines outside of a reconcile.
func (r *reconciler) loggerFor(name mcr.ClusterName) logr.Logger {
	if r.logs == nil {
		return logr.Discard()
	}
	return r.logs(&Request{ClusterName: name})
}

// instance is the state of a cluster.
func (r *reconciler) instance(name mcr.ClusterName) (*workload, bool) {
	if name == hubName {
		w := r.hub.Load()
		return w, w != nil
	}
	return r.workloads.Get(name)
}

// whileLookedAfter calls fn if the cluster is engaged and the kind is managed, and keeps both so meanwhile: state
// recorded for a disengaged cluster would stay for ever.
func (r *reconciler) whileLookedAfter(w *workload, kind kindwatch.Kind, fn func()) {
	if w.inHub {
		w.ifLookedAfter(kind, fn)
		return
	}
	r.workloads.IfCurrent(w.name, w, func() { w.ifLookedAfter(kind, fn) })
}
