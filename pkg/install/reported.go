// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

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

// EnrolledObject returns the enrolled object of a cluster, for events.
func EnrolledObject(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	return obj
}
