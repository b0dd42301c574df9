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
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reports publishes what a workload cluster does not show, once for each change.
type reports struct {
	recorder events.EventRecorder
	reporter install.Reporter
	metrics  *Metrics

	// reported is what was last reported about a definition, or about the policy, which has no definition name.
	reported *install.ReportedReasons[reportKey]

	mu sync.Mutex
	// engaged are the clusters that may be reported on. Results of a pass that outlives its cluster are not reported:
	// nothing would retract them.
	engaged sets.Set[mcr.ClusterName]
}

type reportKey struct {
	cluster mcr.ClusterName
	crd     string
}

func newReports(recorder events.EventRecorder, reporter install.Reporter, metrics *Metrics) *reports {
	return &reports{recorder: recorder, reporter: reporter, metrics: metrics, engaged: sets.New[mcr.ClusterName](), reported: install.NewReportedReasons[reportKey]()}
}

// kind reports how many objects of a kind the cluster shows, and what prevents it from showing all of them, if anything
// does.
func (r *reports) kind(ctx context.Context, cluster connection.Cluster, crd string, objects int, p *condition.Error) {
	if !r.publish(cluster.Name, func() { r.metrics.kind(cluster.Name, crd, objects, p == nil) }) {
		return
	}
	if p == nil {
		r.reported.IsNews(reportKey{cluster.Name, crd}, "")
		r.reporter.DefinitionServed(cluster.Name, crd)
		return
	}
	r.reporter.DefinitionRefused(cluster.Name, crd, p.Reason, p.Message)
	if r.reported.IsNews(reportKey{cluster.Name, crd}, p.Reason) {
		r.warn(ctx, cluster, p, "Mirror")
	}
}

// forgetKind drops the reports of a kind that the cluster should not show.
func (r *reports) forgetKind(cluster mcr.ClusterName, crd string) {
	r.reported.IsNews(reportKey{cluster, crd}, "")
	r.reporter.DefinitionForgotten(cluster, crd)
	r.metrics.forgetKind(cluster, crd)
}

// protection reports whether what Masthead put into a cluster is protected there.
func (r *reports) protection(ctx context.Context, cluster connection.Cluster, p *condition.Error) {
	if !r.publish(cluster.Name, func() { r.metrics.protection(cluster.Name, p == nil) }) {
		return
	}
	reason := ""
	if p != nil {
		reason = p.Reason
	}
	if r.reported.IsNews(reportKey{cluster: cluster.Name}, reason) && p != nil {
		r.warn(ctx, cluster, p, "Protect")
	}
}

// forgetProtection drops the reports for a cluster in which nothing is to be protected.
func (r *reports) forgetProtection(cluster mcr.ClusterName) {
	r.reported.IsNews(reportKey{cluster: cluster}, "")
	r.metrics.forgetProtection(cluster)
}

func (r *reports) warn(ctx context.Context, cluster connection.Cluster, p *condition.Error, action string) {
	log.FromContext(ctx).Info("A workload cluster does not show or protect everything that it should", "reason", p.Reason, "message", p.Message)
	r.recorder.Eventf(install.EnrolledObject(cluster), nil, corev1.EventTypeWarning, p.Reason, action, "%s", p.Message)
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
	r.reported.Forget(func(key reportKey) bool { return key.cluster == cluster })
	r.metrics.forget(cluster)
}
