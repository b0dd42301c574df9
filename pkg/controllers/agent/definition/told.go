// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// refuse tells everybody who should know that a definition cannot be put into a cluster, once.
func (r *Reconciler) refuse(ctx context.Context, cluster connection.Cluster, req mcreconcile.Request, p *condition.Problem) {
	r.metrics.Definition(req.ClusterName, req.Name, false)
	if !r.told(req, p.Reason) {
		return
	}
	r.reporter.DefinitionRefused(req.ClusterName, req.Name, p.Reason, p.Message)
	log.FromContext(ctx).Info("Cannot put a definition into the cluster", "reason", p.Reason, "message", p.Message)
	r.recorder.Eventf(objectOf(cluster), nil, corev1.EventTypeWarning, p.Reason, "PullDefinition", "%s", p.Message)
}

// told remembers what was told about a definition and says whether that is news.
func (r *Reconciler) told(req mcreconcile.Request, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused[req] == what {
		return false
	}
	r.refused[req] = what
	if what == "" {
		delete(r.refused, req)
	}
	return true
}

// objectOf is the enrolled object of a cluster, as events refer to it.
func objectOf(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	return obj
}
