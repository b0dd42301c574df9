// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Handle is the handler of the hub's watcher.
func (h *Hub) Handle(e kindwatch.Event) {
	switch e.Kind {
	case crossplane.XRDKind, crossplane.InfrastructurePublicationKind, crossplane.InfrastructureDefinitionKind:
		// Skip the XRDs of the first list: its end refreshes them all at once.
		if !e.Initial && (e.Type != kindwatch.StateChanged || e.State == kindwatch.StateSynced) {
			h.refreshPublished(h.ReadPublications)
		}
		if e.Type == kindwatch.StateChanged && e.State != kindwatch.StateSynced && h.CannotKnowPublications() {
			// Needs only what the clusters have, not what is offered.
			for _, w := range h.Clusters.All() {
				h.EnqueueDefinitions(w)
			}
		}
	case crossplane.HubCRDKind:
		h.handleCRD(e)
	case crossplane.HubSecretKind:
		if e.Type == kindwatch.StateChanged {
			h.enqueueAll()
			return
		}
		h.handleSecrets(e)
	case HubComposedSecretKind:
		h.handleComposed(e)
	default:
		h.handleClaim(e)
	}
}

func (h *Hub) handleCRD(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			h.refreshPublished(h.ReadPublications)
			for _, w := range h.Clusters.All() {
				h.EnqueueDefinitions(w)
			}
		}
		return
	}
	name := e.Object.GetName()
	if crossplane.IsLegacyCRD(name) {
		h.refreshLegacy()
		if e.Type == kindwatch.Deleted {
			h.refreshPublished(h.ReadPublications)
		}
	}
	resource := schema.ParseGroupResource(name)
	if e.Type == kindwatch.Deleted {
		h.mu.Lock()
		delete(h.served, resource)
		h.mu.Unlock()
	}
	h.Watcher.Retry(resource)
	_, offered, _ := h.Publication(name)
	for _, w := range h.Clusters.All() {
		if offered || slices.Contains(w.definitionNames(), name) {
			h.Definitions.Add(DefinitionRequest(w.Name, name))
		}
		// A claim being deleted may have waited for the kind to be removed.
		if e.Type == kindwatch.Deleted {
			h.EnqueueKind(w, resource, h.Requirements.Add)
		}
	}
}

// handleSecrets enqueues the claims that a Secret belongs to, or belonged to.
func (h *Hub) handleSecrets(e kindwatch.Event) {
	h.handleSecret(e, e.Object)
	if e.Old != nil && !equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(e.Old), metav1.GetControllerOfNoCopy(e.Object)) {
		h.handleSecret(e, e.Old)
	}
}

// handleSecret enqueues the claim whose connection Secret changed. The Secret names its claim; the copying reconcile
// checks that against the claim's UID.
func (h *Hub) handleSecret(e kindwatch.Event, secret *unstructured.Unstructured) {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return
	}
	for _, p := range h.WatchedKinds() {
		if p.Group != gv.Group || p.Kind != owner.Kind {
			continue
		}
		claim, err := h.Watcher.Metadata(p, types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name})
		if err == nil && claim.GetUID() == owner.UID {
			h.enqueueSource(p, claim, e.Initial, h.Requirements.AddAhead)
		}
	}
}

func (h *Hub) handleClaim(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		// Requests that found the kind not synced wait for this.
		for _, w := range h.Clusters.All() {
			h.EnqueueKind(w, e.Kind.GroupResource(), h.Requirements.AddInitial)
		}
		return
	}
	key := ownership.Place{Kind: e.Kind, NamespacedName: types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}}
	h.track(key, e)
	h.Requirements.AddInitial(roomFor(h, e)...)
	for _, r := range h.WaitingFor(key) {
		h.Requirements.Add(r)
	}
	if e.Old != nil {
		if before, _ := ownership.GetSource(e.Old); before != SourceOrZero(e.Object) {
			h.enqueueSource(e.Kind, e.Old, e.Initial, h.Requirements.AddAhead)
		}
	}
	// The claim's own reconcile knows what it wrote; other claims waiting for that place do not.
	if !e.SelfInduced {
		h.enqueueSource(e.Kind, e.Object, e.Initial, func(r ...multicluster.ObjectRequest) { h.Changed(r[0], e) })
	}
}

// enqueueSource queues the claim of an object in the hub if the claim's cluster is enrolled. A change of the claim's
// own object goes ahead. Another object that names its source takes no turn from its cluster: the claim waits for what
// is at its target, and ignores the rest.
func (h *Hub) enqueueSource(kind kindwatch.Kind, obj *unstructured.Unstructured, initial bool, ahead func(...multicluster.ObjectRequest)) {
	s, named := ownership.GetSource(obj)
	if !named || s.Identifier == "" {
		return
	}
	cluster, ok := h.Fleet.ByIdentifier(s.Identifier)
	if !ok {
		return
	}
	var claim *unstructured.Unstructured
	if w, engaged := h.Clusters.Get(cluster.Name); engaged {
		claim, _ = w.getClaim(ownership.Origin{Source: s, Resource: kind.GroupResource(), Name: obj.GetName()}, w.Watcher.Get)
		if theirs, followed := w.KindFor(kind.GroupResource().String()); followed {
			kind = theirs
		}
	}
	req := multicluster.ObjectRequest{
		ClusterName: cluster.Name, Kind: kind,
		NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: obj.GetName()},
	}
	add := h.Requirements.AddInitial
	switch {
	case claim == nil:
	case isStray(obj, claim):
		return
	case !initial && (recordsPlace(claim, obj) || ownership.Belongs(obj, claim)):
		add = ahead
	}
	add(req)
}
