// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reports tells those who should know what a workload cluster does not show, once for each change.
type reports struct {
	recorder events.EventRecorder
	reporter managed.Reporter
	metrics  *Metrics

	// told is what was last told about a definition, or about the policy, which has no name of a definition.
	told *managed.Told[reportKey]

	mu sync.Mutex
	// engaged are the clusters about which there is something to tell. What a pass finds that outlives its cluster is not
	// told: nobody would take it back.
	engaged sets.Set[mcr.ClusterName]
}

type reportKey struct {
	cluster mcr.ClusterName
	crd     string
}

func newReports(recorder events.EventRecorder, reporter managed.Reporter, metrics *Metrics) *reports {
	return &reports{recorder: recorder, reporter: reporter, metrics: metrics, engaged: sets.New[mcr.ClusterName](), told: managed.NewTold[reportKey]()}
}

// kind tells how many objects of a kind the cluster shows, and what hinders it from showing all of them, if anything
// does.
func (r *reports) kind(ctx context.Context, cluster connection.Cluster, crd string, objects int, p *condition.Problem) {
	if !r.tell(cluster.Name, func() { r.metrics.kind(cluster.Name, crd, objects, p == nil) }) {
		return
	}
	if p == nil {
		r.told.IsNews(reportKey{cluster.Name, crd}, "")
		r.reporter.DefinitionServed(cluster.Name, crd)
		return
	}
	if r.told.IsNews(reportKey{cluster.Name, crd}, p.Reason) {
		r.reporter.DefinitionRefused(cluster.Name, crd, p.Reason, p.Message)
		r.warn(ctx, cluster, p, "Mirror")
	}
}

// forgetKind is for a kind that the cluster shall not show.
func (r *reports) forgetKind(cluster mcr.ClusterName, crd string) {
	r.told.IsNews(reportKey{cluster, crd}, "")
	r.reporter.DefinitionForgotten(cluster, crd)
	r.metrics.forgetKind(cluster, crd)
}

// protection tells whether what Masthead put into a cluster is protected there.
func (r *reports) protection(ctx context.Context, cluster connection.Cluster, p *condition.Problem) {
	if !r.tell(cluster.Name, func() { r.metrics.protection(cluster.Name, p == nil) }) {
		return
	}
	reason := ""
	if p != nil {
		reason = p.Reason
	}
	if r.told.IsNews(reportKey{cluster: cluster.Name}, reason) && p != nil {
		r.warn(ctx, cluster, p, "Protect")
	}
}

// forgetProtection is for a cluster in which nothing is to be protected.
func (r *reports) forgetProtection(cluster mcr.ClusterName) {
	r.told.IsNews(reportKey{cluster: cluster}, "")
	r.metrics.forgetProtection(cluster)
}

func (r *reports) warn(ctx context.Context, cluster connection.Cluster, p *condition.Problem, action string) {
	log.FromContext(ctx).Info("A workload cluster does not show or protect everything that it should", "reason", p.Reason, "message", p.Message)
	r.recorder.Eventf(managed.EnrolledObject(cluster), nil, corev1.EventTypeWarning, p.Reason, action, "%s", p.Message)
}

// wrote counts a write.
func (r *reports) wrote(cluster mcr.ClusterName, what string) {
	r.tell(cluster, func() { r.metrics.wrote(cluster, what) })
}

// tell publishes something about a cluster, unless that is gone.
func (r *reports) tell(cluster mcr.ClusterName, publish func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.engaged.Has(cluster) {
		return false
	}
	publish()
	return true
}

// expect begins to tell about a cluster.
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
	r.told.Forget(func(key reportKey) bool { return key.cluster == cluster })
	r.metrics.forget(cluster)
}
