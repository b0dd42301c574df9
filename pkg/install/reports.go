// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Reporter receives the state of a definition in a workload cluster. It must not block. wanted is false once the
// definition is no longer meant for the cluster, or the cluster is gone. problem is nil if the cluster has the
// definition and the objects that belong to it; its reason is one of the installer's constants, its message is for
// users.
type Reporter func(cluster mcr.ClusterName, crd string, wanted bool, problem *condition.Error)

// Reports publishes the state of definitions in workload clusters: always to a Reporter, and once per reason as an
// event on the enrolled object and in the log, because a message can repeat what a cluster says, and differ each time.
type Reports struct {
	reporter Reporter
	recorder events.EventRecorder
	reasons  Latest[reportKey, string]
}

// reportKey is what is reported about: a definition, or something else if the name is empty.
type reportKey struct {
	cluster mcr.ClusterName
	crd     string
}

// NewReports returns Reports that have reported nothing. The reporter may be nil.
func NewReports(reporter Reporter, recorder events.EventRecorder) *Reports {
	if reporter == nil {
		reporter = func(mcr.ClusterName, string, bool, *condition.Error) {}
	}
	return &Reports{reporter: reporter, recorder: recorder}
}

// Definition reports whether a cluster has the wanted definition, and the problem with it, if there is one. That of a
// served definition is only a notice, and nil if there is none.
func (r *Reports) Definition(ctx context.Context, cluster connection.Cluster, crd, action string, served bool, p *condition.Error) {
	eventType := corev1.EventTypeWarning
	if served {
		eventType = corev1.EventTypeNormal
		r.reporter(cluster.Name, crd, true, nil)
	} else {
		r.reporter(cluster.Name, crd, true, p)
	}
	r.event(ctx, cluster, crd, eventType, action, p)
}

// Cluster reports a problem that is not about a definition, or that there is none.
func (r *Reports) Cluster(ctx context.Context, cluster connection.Cluster, action string, p *condition.Error) {
	r.event(ctx, cluster, "", corev1.EventTypeWarning, action, p)
}

// event publishes a reason that has changed.
func (r *Reports) event(ctx context.Context, cluster connection.Cluster, crd, eventType, action string, p *condition.Error) {
	reason := ""
	if p != nil {
		reason = p.Reason
	}
	if !r.reasons.Set(reportKey{cluster.Name, crd}, reason) || p == nil {
		return
	}
	log.FromContext(ctx).Info("Reporting on a workload cluster", "reason", p.Reason, "message", p.Message)
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	r.recorder.Eventf(obj, nil, eventType, p.Reason, action, "%s", p.Message)
}

// Forget drops what was reported about a definition that is not meant for a cluster or, without a name, by Cluster.
func (r *Reports) Forget(cluster mcr.ClusterName, crd string) {
	r.reasons.Set(reportKey{cluster, crd}, "")
	if crd != "" {
		r.reporter(cluster, crd, false, nil)
	}
}

// ForgetCluster drops what was reported about a cluster that is gone.
func (r *Reports) ForgetCluster(cluster mcr.ClusterName) {
	r.reasons.Forget(func(key reportKey) bool { return key.cluster == cluster })
}
