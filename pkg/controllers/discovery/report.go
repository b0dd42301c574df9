// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
)

// reports publishes what a workload cluster does not show, once for each change.
type reports struct {
	shared  *install.Reports
	metrics *Metrics
}

func newReports(recorder events.EventRecorder, reporter install.Reporter, metrics *Metrics) *reports {
	return &reports{shared: install.NewReports(reporter, recorder), metrics: metrics}
}

// reportKind reports how many objects of a kind the cluster shows, and what prevents it from showing all of them, if
// anything does.
func (p *pass) reportKind(ctx context.Context, crd string, objects int, problem *condition.Error) {
	if p.publish(func(m *Metrics) { m.kind(p.w.name, crd, objects, problem == nil) }) {
		p.reports.shared.Definition(ctx, p.cluster, crd, "Mirror", problem == nil, problem)
	}
}

// reportProtection reports whether what Masthead put into the cluster is protected there.
func (p *pass) reportProtection(ctx context.Context, problem *condition.Error) {
	if p.publish(func(m *Metrics) { m.protection(p.w.name, problem == nil) }) {
		p.reports.shared.Cluster(ctx, p.cluster, "Protect", problem)
	}
}

// publish publishes metrics, unless the pass outlives its instance of the cluster: nothing would retract them.
func (p *pass) publish(publish func(*Metrics)) bool {
	return p.workloads.IfCurrent(p.w.name, p.w, func() { publish(p.reports.metrics) })
}

// forgetKind drops the reports of a kind that the cluster should not show.
func (r *reports) forgetKind(cluster mcr.ClusterName, crd string) {
	r.shared.Forget(cluster, crd)
	r.metrics.forgetKind(cluster, crd)
}

// forgetProtection drops the reports for a cluster in which nothing is to be protected.
func (r *reports) forgetProtection(cluster mcr.ClusterName) {
	r.shared.Forget(cluster, "")
	r.metrics.forgetProtection(cluster)
}

// forgetCluster drops everything about a cluster that is gone.
func (r *reports) forgetCluster(cluster mcr.ClusterName) {
	r.shared.ForgetCluster(cluster)
	r.metrics.forget(cluster)
}
