// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Reporter is told how the definition of Applications fares in the workload clusters. It must not block.
type Reporter interface {
	// DefinitionServed: the cluster has Applications.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the cluster has none that Masthead could look after. The reason is one of this package's
	// constants, the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the cluster is not meant to have Applications any more, or is gone.
	DefinitionForgotten(cluster mcr.ClusterName, crd string)
}

// nopReporter is used when nobody wants to know.
type nopReporter struct{}

// DefinitionServed implements Reporter.
func (nopReporter) DefinitionServed(mcr.ClusterName, string) {}

// DefinitionRefused implements Reporter.
func (nopReporter) DefinitionRefused(mcr.ClusterName, string, string, string) {}

// DefinitionForgotten implements Reporter.
func (nopReporter) DefinitionForgotten(mcr.ClusterName, string) {}

// enrolments says which object enrols a cluster.
type enrolments interface {
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)
}

// Reports passes on how the definition fares in the workload clusters, and writes an event on the enrolled
// object when that changes for the worse. It is a Reporter itself.
type Reports struct {
	next     Reporter
	recorder events.EventRecorder
	fleet    enrolments

	mu sync.Mutex
	// told is the reason that was last told about a cluster.
	told map[mcr.ClusterName]string
}

var _ Reporter = &Reports{}

// NewReports returns what passes on to next, which is nil if nobody wants to know.
func NewReports(next Reporter, recorder events.EventRecorder, fleet enrolments) *Reports {
	if next == nil {
		next = nopReporter{}
	}
	return &Reports{next: next, recorder: recorder, fleet: fleet, told: map[mcr.ClusterName]string{}}
}

// DefinitionServed implements Reporter.
func (d *Reports) DefinitionServed(cluster mcr.ClusterName, crd string) {
	d.news(cluster, "")
	d.next.DefinitionServed(cluster, crd)
}

// DefinitionRefused implements Reporter.
func (d *Reports) DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string) {
	if d.news(cluster, reason) {
		d.event(cluster, corev1.EventTypeWarning, reason, message)
	}
	d.next.DefinitionRefused(cluster, crd, reason, message)
}

// DefinitionForgotten implements Reporter.
func (d *Reports) DefinitionForgotten(cluster mcr.ClusterName, crd string) {
	d.news(cluster, "")
	d.next.DefinitionForgotten(cluster, crd)
}

// Served is DefinitionServed, with something to notice about it.
func (d *Reports) Served(cluster mcr.ClusterName, notice *condition.Problem) {
	if notice == nil {
		d.DefinitionServed(cluster, Name)
		return
	}
	if d.news(cluster, notice.Reason) {
		d.event(cluster, corev1.EventTypeNormal, notice.Reason, notice.Message)
	}
	d.next.DefinitionServed(cluster, Name)
}

// news remembers what was told and says whether it is news.
func (d *Reports) news(cluster mcr.ClusterName, reason string) bool {
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

func (d *Reports) event(name mcr.ClusterName, eventType, reason, message string) {
	cluster, enrolled := d.fleet.Lookup(name)
	if !enrolled {
		return
	}
	o := cluster.Enrolment.Object
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	object.SetGroupVersionKind(o.GroupVersionKind)
	d.recorder.Eventf(object, nil, eventType, reason, "PullDefinition", "%s", message)
}
