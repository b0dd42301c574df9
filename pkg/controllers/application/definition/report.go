// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// enrolments finds the object that enrols a cluster.
type enrolments interface {
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)
}

// Reports forwards the state of the definition in the workload clusters, and writes an event on the enrolled object
// when it gets worse. It is an install.Reporter itself.
type Reports struct {
	next     install.Reporter
	recorder events.EventRecorder
	fleet    enrolments
	reported *install.ReportedReasons[mcr.ClusterName]
}

var _ install.Reporter = &Reports{}

// NewReports returns Reports that forward to next; with nil, nothing is forwarded.
func NewReports(next install.Reporter, recorder events.EventRecorder, fleet enrolments) *Reports {
	if next == nil {
		next = install.NopReporter{}
	}
	return &Reports{next: next, recorder: recorder, fleet: fleet, reported: install.NewReportedReasons[mcr.ClusterName]()}
}

// DefinitionServed implements install.Reporter.
func (d *Reports) DefinitionServed(cluster mcr.ClusterName, crd string) {
	d.reported.IsNews(cluster, "")
	d.next.DefinitionServed(cluster, crd)
}

// DefinitionRefused implements install.Reporter.
func (d *Reports) DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string) {
	if d.reported.IsNews(cluster, reason) {
		d.event(cluster, corev1.EventTypeWarning, reason, message)
	}
	d.next.DefinitionRefused(cluster, crd, reason, message)
}

// DefinitionForgotten implements install.Reporter.
func (d *Reports) DefinitionForgotten(cluster mcr.ClusterName, crd string) {
	d.reported.IsNews(cluster, "")
	d.next.DefinitionForgotten(cluster, crd)
}

// Served is DefinitionServed, with an optional notice.
func (d *Reports) Served(cluster mcr.ClusterName, notice *condition.Error) {
	if notice == nil {
		d.DefinitionServed(cluster, Name)
		return
	}
	if d.reported.IsNews(cluster, notice.Reason) {
		d.event(cluster, corev1.EventTypeNormal, notice.Reason, notice.Message)
	}
	d.next.DefinitionServed(cluster, Name)
}

func (d *Reports) event(name mcr.ClusterName, eventType, reason, message string) {
	cluster, enrolled := d.fleet.Lookup(name)
	if !enrolled {
		return
	}
	d.recorder.Eventf(install.EnrolledObject(cluster), nil, eventType, reason, "PullDefinition", "%s", message)
}
