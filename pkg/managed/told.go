// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Told remembers the reason that was last told about each thing, so that an event is written when something changed and
// not when it is still so. It is safe for concurrent use.
type Told[K comparable] struct {
	mu      sync.Mutex
	reasons map[K]string
}

// NewTold returns a memory of nothing.
func NewTold[K comparable]() *Told[K] { return &Told[K]{reasons: map[K]string{}} }

// IsNews notes a reason, of which the empty one says that all is well, and says whether it is another one than before.
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

// Forget drops what was told about some things.
func (t *Told[K]) Forget(which func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.reasons, func(about K, _ string) bool { return which(about) })
}

// EnrolledObject is the enrolled object of a cluster, as events refer to it.
func EnrolledObject(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	return obj
}
