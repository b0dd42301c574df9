// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// refuse reports that a definition cannot be put into a cluster. Users read of it once: the text may be the cluster's,
// and differ each time.
func (r *Reconciler) refuse(ctx context.Context, cluster connection.Cluster, req mcreconcile.Request, p *condition.Error) {
	r.metrics.Definition(req.ClusterName, req.Name, false)
	r.reporter.DefinitionRefused(req.ClusterName, req.Name, p.Reason, p.Message)
	if !r.refused.IsNews(req, p.Reason) {
		return
	}
	log.FromContext(ctx).Info("Cannot write a definition to the cluster", "reason", p.Reason, "message", p.Message)
	r.recorder.Eventf(managed.EnrolledObject(cluster), nil, corev1.EventTypeWarning, p.Reason, "PullDefinition", "%s", p.Message)
}
