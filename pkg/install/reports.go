// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Reports publishes the state of definitions in workload clusters: always to a Reporter, and once per reason as an
// event on the enrolled object and in the log, because a message can repeat what a cluster says, and differ each time.
type Reports struct {
	reporter Reporter
	recorder events.EventRecorder
	reasons  *ReportedReasons[reportKey]
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
	return &Reports{reporter: reporter, recorder: recorder, reasons: NewReportedReasons[reportKey]()}
}

// Definition reports whether a cluster has the wanted definition, and the problem with it, if there is one. That of a
// served definition is only a notice.
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
	if !r.reasons.IsNews(reportKey{cluster.Name, crd}, reason) || p == nil {
		return
	}
	log.FromContext(ctx).Info("A workload cluster does not have everything that it should", "reason", p.Reason, "message", p.Message)
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	r.recorder.Eventf(obj, nil, eventType, p.Reason, action, "%s", p.Message)
}

// Forget drops what was reported about a definition that is not meant for a cluster.
func (r *Reports) Forget(cluster mcr.ClusterName, crd string) {
	r.reasons.IsNews(reportKey{cluster, crd}, "")
	if crd != "" {
		r.reporter.DefinitionForgotten(cluster, crd)
	}
}

// ForgetCluster drops what was reported about a cluster that is gone.
func (r *Reports) ForgetCluster(cluster mcr.ClusterName) {
	r.reasons.Forget(func(key reportKey) bool { return key.cluster == cluster })
}

// ReportedReasons stores the last reported reason per key, so that events are written only on changes. Its methods are
// safe for concurrent use.
type ReportedReasons[K comparable] struct {
	mu      sync.Mutex
	reasons map[K]string
}

// NewReportedReasons returns empty ReportedReasons.
func NewReportedReasons[K comparable]() *ReportedReasons[K] {
	return &ReportedReasons[K]{reasons: map[K]string{}}
}

// IsNews stores a reason and reports whether it differs from the previous one. An empty reason means that all is well.
func (r *ReportedReasons[K]) IsNews(about K, reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reasons[about] == reason {
		return false
	}
	r.reasons[about] = reason
	if reason == "" {
		delete(r.reasons, about)
	}
	return true
}

// Forget drops the reasons of the selected keys.
func (r *ReportedReasons[K]) Forget(which func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.reasons, func(about K, _ string) bool { return which(about) })
}
