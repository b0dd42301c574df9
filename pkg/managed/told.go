// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Told stores the last reported reason per key, so that events are written only on changes. It is safe for concurrent
// use.
type Told[K comparable] struct {
	mu      sync.Mutex
	reasons map[K]string
}

// NewTold returns an empty Told.
func NewTold[K comparable]() *Told[K] { return &Told[K]{reasons: map[K]string{}} }

// IsNews stores a reason and reports whether it differs from the previous one. An empty reason means that all is well.
func (t *Told[K]) IsNews(about K, reason string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reasons[about] == reason {
		return false
	}
	t.reasons[about] = reason
	if reason == "" {
		delete(t.reasons, about)
	}
	return true
}

// Forget drops the reasons of the selected keys.
func (t *Told[K]) Forget(which func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.reasons, func(about K, _ string) bool { return which(about) })
}

// EnrolledObject returns the enrolled object of a cluster, for events.
func EnrolledObject(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	return obj
}
