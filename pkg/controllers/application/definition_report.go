// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// definitionReports passes on how the definition fares in the workload clusters, and writes an event on the enrolled
// object when that changes for the worse. It is a DefinitionReporter itself.
type definitionReports struct {
	next     DefinitionReporter
	recorder events.EventRecorder
	fleet    Fleet

	mu sync.Mutex
	// told is the reason that was last told about a cluster.
	told map[mcr.ClusterName]string
}

var _ DefinitionReporter = &definitionReports{}

func newDefinitionReports(next DefinitionReporter, recorder events.EventRecorder, fleet Fleet) *definitionReports {
	return &definitionReports{next: next, recorder: recorder, fleet: fleet, told: map[mcr.ClusterName]string{}}
}

// DefinitionServed implements DefinitionReporter.
func (d *definitionReports) DefinitionServed(cluster mcr.ClusterName, crd string) {
	d.news(cluster, "")
	d.next.DefinitionServed(cluster, crd)
}

// DefinitionRefused implements DefinitionReporter.
func (d *definitionReports) DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string) {
	if d.news(cluster, reason) {
		d.event(cluster, corev1.EventTypeWarning, reason, message)
	}
	d.next.DefinitionRefused(cluster, crd, reason, message)
}

// DefinitionForgotten implements DefinitionReporter.
func (d *definitionReports) DefinitionForgotten(cluster mcr.ClusterName, crd string) {
	d.news(cluster, "")
	d.next.DefinitionForgotten(cluster, crd)
}

// served is DefinitionServed, with something to notice about it.
func (d *definitionReports) served(cluster mcr.ClusterName, notice *condition.Problem) {
	if notice == nil {
		d.DefinitionServed(cluster, definitionName)
		return
	}
	if d.news(cluster, notice.Reason) {
		d.event(cluster, corev1.EventTypeNormal, notice.Reason, notice.Message)
	}
	d.next.DefinitionServed(cluster, definitionName)
}

// news remembers what was told and says whether it is news.
func (d *definitionReports) news(cluster mcr.ClusterName, reason string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told[cluster] == reason {
		return false
	}
	d.told[cluster] = reason
	if reason == "" {
		delete(d.told, cluster)
	}
	return true
}

func (d *definitionReports) event(name mcr.ClusterName, eventType, reason, message string) {
	cluster, enrolled := d.fleet.Lookup(name)
	if !enrolled {
		return
	}
	o := cluster.Enrolment.Object
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	object.SetGroupVersionKind(o.GroupVersionKind)
	d.recorder.Eventf(object, nil, eventType, reason, "PullDefinition", "%s", message)
}
