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

// Reporter receives the state of definitions in the workload clusters. It must not block.
type Reporter interface {
	// DefinitionServed: the cluster has the wanted definition, and the objects that belong to it.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the cluster does not. The reason is one of the installer's constants, the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the definition is no longer meant for the cluster, or the cluster is gone.
	DefinitionForgotten(cluster mcr.ClusterName, crd string)
}

// NopReporter discards all reports.
type NopReporter struct{}

// DefinitionServed implements Reporter.
func (NopReporter) DefinitionServed(mcr.ClusterName, string) {}

// DefinitionRefused implements Reporter.
func (NopReporter) DefinitionRefused(mcr.ClusterName, string, string, string) {}

// DefinitionForgotten implements Reporter.
func (NopReporter) DefinitionForgotten(mcr.ClusterName, string) {}

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
		reporter = NopReporter{}
	}
	return &Reports{reporter: reporter, recorder: recorder}
}

// Definition reports whether a cluster has the wanted definition, and the problem with it, if there is one. That of a
// served definition is only a notice, and nil if there is none.
func (r *Reports) Definition(ctx context.Context, cluster connection.Cluster, crd, action string, served bool, p *condition.Error) {
	eventType := corev1.EventTypeWarning
	if served {
		eventType = corev1.EventTypeNormal
		r.reporter.DefinitionServed(cluster.Name, crd)
	} else {
		r.reporter.DefinitionRefused(cluster.Name, crd, p.Reason, p.Message)
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
		r.reporter.DefinitionForgotten(cluster, crd)
	}
}

// ForgetCluster drops what was reported about a cluster that is gone.
func (r *Reports) ForgetCluster(cluster mcr.ClusterName) {
	r.reasons.Forget(func(key reportKey) bool { return key.cluster == cluster })
}
