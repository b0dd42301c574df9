// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reports publishes what a workload cluster does not show, once for each change.
type reports struct {
	shared  *install.Reports
	metrics *Metrics

	mu sync.Mutex
	// engaged are the clusters that may be reported on. Results of a pass that outlives its cluster are not reported:
	// nothing would retract them.
	engaged sets.Set[mcr.ClusterName]
}

func newReports(recorder events.EventRecorder, reporter install.Reporter, metrics *Metrics) *reports {
	return &reports{shared: install.NewReports(reporter, recorder), metrics: metrics, engaged: sets.New[mcr.ClusterName]()}
}

// kind reports how many objects of a kind the cluster shows, and what prevents it from showing all of them, if anything
// does.
func (r *reports) kind(ctx context.Context, cluster connection.Cluster, crd string, objects int, p *condition.Error) {
	if r.publish(cluster.Name, func() { r.metrics.kind(cluster.Name, crd, objects, p == nil) }) {
		r.shared.Definition(ctx, cluster, crd, "Mirror", p == nil, p)
	}
}

// forgetKind drops the reports of a kind that the cluster should not show.
func (r *reports) forgetKind(cluster mcr.ClusterName, crd string) {
	r.shared.Forget(cluster, crd)
	r.metrics.forgetKind(cluster, crd)
}

// protection reports whether what Masthead put into a cluster is protected there.
func (r *reports) protection(ctx context.Context, cluster connection.Cluster, p *condition.Error) {
	if r.publish(cluster.Name, func() { r.metrics.protection(cluster.Name, p == nil) }) {
		r.shared.Cluster(ctx, cluster, "Protect", p)
	}
}

// forgetProtection drops the reports for a cluster in which nothing is to be protected.
func (r *reports) forgetProtection(cluster mcr.ClusterName) {
	r.shared.Forget(cluster, "")
	r.metrics.forgetProtection(cluster)
}

// wrote counts a write.
func (r *reports) wrote(cluster mcr.ClusterName, what string) {
	r.publish(cluster, func() { r.metrics.wrote(cluster, what) })
}

// publish publishes something about a cluster, unless it is gone.
func (r *reports) publish(cluster mcr.ClusterName, publish func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.engaged.Has(cluster) {
		return false
	}
	publish()
	return true
}

// expect starts reporting on a cluster.
func (r *reports) expect(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engaged.Insert(cluster)
}

// forgetCluster drops everything about a cluster that is gone.
func (r *reports) forgetCluster(cluster mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engaged.Delete(cluster)
	r.shared.ForgetCluster(cluster)
	r.metrics.forget(cluster)
}
