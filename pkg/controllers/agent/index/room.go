// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Limits are the maximum numbers of objects in the hub that may come from a cluster, and from one of its namespaces;
// nil means no limit.
type Limits struct{ Cluster, Namespace *int32 }

// TakeRoom reports whether an object may be created for an origin, and which limit forbids it. What the hub has counts,
// and not the claims: objects whose claims are gone cost the same. An object counts only if leads says that claims of
// its source namespace may be in its namespace of the hub, since anybody can name any source in a namespace of theirs.
//
// The room is taken until LeaveRoom, so that concurrent creations do not exceed a limit. An object that was created by
// then is known (Observe).
func (h *Hub) TakeRoom(o ownership.Origin, limits Limits, leads func(source, target string) bool) (full *int32, ofNamespace bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cluster, namespace := int32(0), int32(0)
	count := func(from ownership.Origin) {
		cluster++
		if from.Namespace == o.Namespace {
			namespace++
		}
	}
	for _, index := range []originIndex{h.origins, h.left} {
		for from, places := range index[o.Identifier] {
			for at := range places {
				if from != o && leads(from.Namespace, at.Namespace) {
					count(from)
				}
			}
		}
	}
	for from := range h.taken[o.Identifier] {
		if from != o && len(h.origins.places(from)) == 0 {
			count(from)
		}
	}
	switch {
	case limits.Namespace != nil && namespace >= *limits.Namespace:
		return limits.Namespace, true
	case limits.Cluster != nil && cluster >= *limits.Cluster:
		return limits.Cluster, false
	}
	h.taken.Insert(o.Identifier, o)
	return nil, false
}

// LeaveRoom ends what TakeRoom began.
func (h *Hub) LeaveRoom(o ownership.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken.Delete(o.Identifier, o)
}

// Room is the place in the hub where a claim waits for room for another object of its cluster.
func Room(identifier string) ownership.Place {
	return ownership.Place{Kind: kindwatch.Kind{Resource: "claims"}, NamespacedName: types.NamespacedName{Name: identifier}}
}

// roomFor returns a claim that waits for room if an event about an object has made some.
func roomFor(h *Hub, e kindwatch.Event) []multicluster.ObjectRequest {
	before, now := e.Old, ownership.Source{}
	if e.Type == kindwatch.Deleted {
		before = e.Object
	} else {
		now = countsFor(e.Object)
	}
	if before == nil || countsFor(before) == now {
		return nil
	}
	waiting := h.WaitingFor(Room(countsFor(before).Identifier))
	return waiting[:min(len(waiting), 1)] // For one object. The others are tried again slowly.
}

// countsFor returns the source for which an object of the hub counts.
func countsFor(obj *unstructured.Unstructured) ownership.Source {
	if former, ok := ownership.FormerSource(obj); ok {
		return former
	}
	return SourceOrZero(obj)
}

// HubNamespace is the place in the hub where a claim waits for a namespace. The hub's watcher does not watch
// namespaces: the manager's cache has them already, for the classes' allowedNamespaces.
func HubNamespace(name string) ownership.Place {
	return ownership.Place{Kind: kindwatch.Kind{GroupVersionKind: namespaceGVK, Resource: "namespaces"}, NamespacedName: types.NamespacedName{Name: name}}
}

// NamespaceMetadata returns an empty namespace for reading from the manager's cache of hub namespaces.
func NamespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}
