// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Hub caches the state of the hub, and turns changes there into requests.
type Hub struct {
	Watcher      *kindwatch.Watcher
	Fleet        Fleet
	Clusters     *Clusters
	Requirements *multicluster.EventQueue[multicluster.ObjectRequest]
	Definitions  *multicluster.EventQueue[mcreconcile.Request]

	// Changed queues a claim for a live change of its object. It must not block.
	Changed func(multicluster.ObjectRequest, kindwatch.Event)

	// Clock dates deletions that the watch has yet to report.
	Clock clock.PassiveClock

	// refreshing serializes refreshes of what the hub offers. It is acquired before the lock of the workloads, and that
	// before mu.
	refreshing sync.Mutex

	// Kept limits what the watcher keeps of claims.
	Kept Kept

	mu sync.Mutex

	// published are the claim kinds that the hub offers, by CRD name. While the XRDs cannot be watched, the last known
	// kinds stay.
	published map[string]crossplane.Publication

	// publishedKnown reports whether the XRDs were ever read.
	publishedKnown bool

	// watched are the claim kinds that are needed, with the clusters that need them. wants is the inverse. Their versions
	// are the clusters'; following are the same kinds in the hub's versions, as the hub's watcher watches them.
	watched   objects.Index[kindwatch.Kind, mcr.ClusterName]
	wants     map[mcr.ClusterName]sets.Set[kindwatch.Kind]
	following map[schema.GroupResource]kindwatch.Kind

	// served are the versions that the hub serves, as last read from its definitions.
	served map[schema.GroupResource]servedVersions

	// composed are the composed Secrets in the hub.
	composed secretIndex

	// origins are the claims in the hub that name a source, by source.
	origins originIndex

	// left are the objects that deleted claims have left, by their former source. They count in TakeRoom.
	left originIndex

	// taken are the origins for which an object may be created now; see TakeRoom.
	taken objects.Index[string, ownership.Origin]

	// deleted are the deletions that the watch has yet to report.
	deleted deletions

	// waiting are the claims in workload clusters that wait for a change at a place in the hub.
	waiting waits[ownership.Place]
}

// servedVersions are the versions of a kind that the hub serves. The kind is in one of them, if there is one: the
// storage version if possible.
type servedVersions struct {
	kind     kindwatch.Kind
	versions []string
}

// NewHub returns a Hub with an empty cache. Set its Watcher before using it.
func NewHub(fleet Fleet, w *Clusters, requirements *multicluster.EventQueue[multicluster.ObjectRequest], definitions *multicluster.EventQueue[mcreconcile.Request]) *Hub {
	h := &Hub{
		Clock:        clock.RealClock{},
		deleted:      deletions{},
		Fleet:        fleet,
		Clusters:     w,
		Requirements: requirements,
		Definitions:  definitions,
		published:    map[string]crossplane.Publication{},
		watched:      objects.Index[kindwatch.Kind, mcr.ClusterName]{},
		wants:        map[mcr.ClusterName]sets.Set[kindwatch.Kind]{},
		following:    map[schema.GroupResource]kindwatch.Kind{},
		served:       map[schema.GroupResource]servedVersions{},
		composed:     secretIndex{objects.Index[types.UID, types.NamespacedName]{}},
		origins:      originIndex{},
		left:         originIndex{},
		taken:        objects.Index[string, ownership.Origin]{},
		waiting:      newWaits[ownership.Place](),
	}
	h.Changed = func(req multicluster.ObjectRequest, _ kindwatch.Event) { h.Requirements.AddAhead(req) }
	h.Kept = Kept{hub: h, charged: map[ownership.Place]charge{}, accounts: map[payer]*account{}}
	return h
}

// SourceOrZero returns the source that an object names, or the zero value.
func SourceOrZero(obj *unstructured.Unstructured) ownership.Source {
	s, _ := ownership.GetSource(obj)
	return s
}

// Observe caches the hub's answer to a write or a live read before the watch reports it. An answer that comes after the
// watch has reported the object's deletion is ignored: no later event would remove it from the index of origins, and it
// would be counted as an orphan for as long as the process lives.
func (h *Hub) Observe(key ownership.Place, obj *unstructured.Unstructured) {
	h.Watcher.Observe(key.Kind, key.NamespacedName, obj)
	h.Kept.releaseGone(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	// If the cache learns of the deletion after this, the handler of that event waits for mu and removes the object.
	current, err := h.Watcher.Metadata(key.Kind, key.NamespacedName)
	if apierrors.IsNotFound(err) || err == nil && SourceOrZero(current) != SourceOrZero(obj) {
		return
	}
	h.trackLocked(key, kindwatch.Event{Type: kindwatch.Added, Kind: key.Kind, Object: obj})
}

// Places returns the places in the hub whose objects name an origin. Objects that the watch does not have are
// skipped: their event can be under way.
func (h *Hub) Places(o ownership.Origin) []ownership.Place {
	h.mu.Lock()
	places := h.origins.places(o)
	h.mu.Unlock()
	out := places[:0]
	for _, key := range places {
		obj, err := h.Watcher.Metadata(key.Kind, key.NamespacedName)
		if apierrors.IsNotFound(err) || err == nil && SourceOrZero(obj) != o.Source {
			continue
		}
		out = append(out, key)
	}
	return out
}

// EnqueueKind queues every claim of a kind in a workload cluster.
func (h *Hub) EnqueueKind(w *Cluster, resource schema.GroupResource, add func(...multicluster.ObjectRequest)) {
	kind, _ := w.KindFor(resource.String())
	claims, _ := w.Watcher.List(kind)
	for _, c := range claims {
		add(w.Request(kind, c.Key))
	}
}

// enqueueAll queues every claim of every workload cluster.
func (h *Hub) enqueueAll() {
	for _, w := range h.Clusters.All() {
		for _, kind := range w.ClaimKinds() {
			h.EnqueueKind(w, kind.GroupResource(), h.Requirements.AddInitial)
		}
	}
}

// Wait makes a request wait for a change at one place of the hub, replacing its earlier wait.
func (h *Hub) Wait(key ownership.Place, r multicluster.ObjectRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting.set(r, key)
}

// StopWaiting undoes Wait.
func (h *Hub) StopWaiting(r multicluster.ObjectRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting.set(r)
}

// WaitingFor returns the claims that wait for a change at a place of the hub.
func (h *Hub) WaitingFor(key ownership.Place) []multicluster.ObjectRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting.requests.Values(key)
}

// ForgetRequests drops the waits of a cluster's claims that are gone.
func (h *Hub) ForgetRequests(name mcr.ClusterName, gone func(multicluster.ObjectRequest) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.waiting.keys[name] {
		if gone(r) {
			h.waiting.set(r)
		}
	}
}

// track maintains the indices of origins and deletions.
func (h *Hub) track(key ownership.Place, e kindwatch.Event) {
	if e.Type == kindwatch.Deleted {
		h.Kept.releaseGone(key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trackLocked(key, e)
}

func (h *Hub) trackLocked(key ownership.Place, e kindwatch.Event) {
	h.forgetReported(key)
	if h.following[key.Kind.GroupResource()] != key.Kind {
		return // What was read of it is forgotten.
	}
	if e.Old != nil {
		h.untrack(key, e.Old)
	}
	if e.Type == kindwatch.Deleted {
		h.untrack(key, e.Object)
		return
	}
	s, named := ownership.GetSource(e.Object)
	if former, ok := ownership.FormerSource(e.Object); ok {
		h.left.insert(ownership.Origin{Source: former, Resource: key.Kind.GroupResource(), Name: key.Name}, key)
	}
	if !named {
		return
	}
	from := ownership.Origin{Source: s, Resource: e.Kind.GroupResource(), Name: e.Object.GetName()}
	h.origins.insert(from, key)
}

func (h *Hub) untrack(key ownership.Place, obj *unstructured.Unstructured) {
	if former, ok := ownership.FormerSource(obj); ok {
		h.left.remove(ownership.Origin{Source: former, Resource: key.Kind.GroupResource(), Name: key.Name}, key)
	}
	s, named := ownership.GetSource(obj)
	if !named {
		return
	}
	from := ownership.Origin{Source: s, Resource: key.Kind.GroupResource(), Name: key.Name}
	h.origins.remove(from, key)
}
