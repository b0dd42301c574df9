// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/setmap"
)

// Kinds of the hub that are always watched.
var (
	xrdKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition",
		},
		Resource:      "compositeresourcedefinitions",
		ClusterScoped: true,
	}

	hubCRDKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: crdGVK,
		Resource:         "customresourcedefinitions",
		ClusterScoped:    true,
		MetadataOnly:     true,
	}

	// hubSecretKind are the connection Secrets of the hub, without their data. Other Secrets are not seen at all.
	hubSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		FieldSelector:    "type=" + string(secretTypeConnection),
	}
)

var crdGVK = schema.GroupVersionKind{ //nolint:gochecknoglobals // A constant.
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}

// Owners of kinds in the hub's watcher.
const (
	ownerFixed    = "fixed"
	ownerLegacy   = "legacy"
	ownerClaims   = "claims"
	ownerComposed = "composed"
)

// hubKey names a claim in the hub, or a place where one could be.
type hubKey struct {
	kind kindwatch.Kind
	types.NamespacedName
}

// origin names a claim in a workload cluster from the hub's point of view.
type origin struct {
	source
	kind kindwatch.Kind
	name string
}

// hub is what the agent knows about the hub, and what turns changes there into requests.
type hub struct {
	watcher      *kindwatch.Watcher
	fleet        Fleet
	workloads    *workloads
	requirements *enqueuer[Request]
	definitions  *enqueuer[mcreconcile.Request]

	// refreshing is held while it is found out and noted what the hub offers. It is taken before mu, and so is the lock of the workloads.
	refreshing sync.Mutex

	mu sync.Mutex

	// published are the claim kinds that the hub offers, by the name of their CRD. While the XRDs cannot be watched, they
	// stay as they were last seen.
	published map[string]publication

	// publishedKnown is whether the XRDs were ever seen.
	publishedKnown bool

	// watched are the claim kinds that the hub's watcher is asked for, with the clusters because of which it is. wants is the inverse.
	watched setmap.Map[kindwatch.Kind, mcr.ClusterName]
	wants   map[mcr.ClusterName]sets.Set[kindwatch.Kind]

	// composed are the Secrets that were composed in the hub, by the UID of their controller.
	composed map[types.UID]sets.Set[types.NamespacedName]

	// origins are the claims in the hub that name a source, by that source.
	origins originIndex

	// waiting are the claims in workload clusters that wait for something to change at a place in the hub.
	waiting setmap.Map[hubKey, Request]

	// waitsAt is the inverse of waiting.
	waitsAt perRequest[hubKey]
}

func newHub(fleet Fleet, w *workloads, requirements *enqueuer[Request], definitions *enqueuer[mcreconcile.Request]) *hub {
	return &hub{
		fleet:        fleet,
		workloads:    w,
		requirements: requirements,
		definitions:  definitions,
		published:    map[string]publication{},
		watched:      setmap.Map[kindwatch.Kind, mcr.ClusterName]{},
		wants:        map[mcr.ClusterName]sets.Set[kindwatch.Kind]{},
		composed:     map[types.UID]sets.Set[types.NamespacedName]{},
		origins:      originIndex{},
		waiting:      setmap.Map[hubKey, Request]{},
		waitsAt:      perRequest[hubKey]{},
	}
}

// handle is the handler of the hub's watcher.
func (h *hub) handle(e kindwatch.Event) {
	switch e.Kind {
	case xrdKind, infrastructurePublicationKind, infrastructureDefinitionKind:
		// During the first list each XRD would be one more reason to look at all of them; the end of it is reason enough.
		if !e.Initial && (e.Type != kindwatch.StateChanged || e.State == kindwatch.StateSynced) {
			h.refreshPublished()
		}
		if e.Type == kindwatch.StateChanged && e.State != kindwatch.StateSynced && h.cannotKnowPublications() {
			// What the clusters have can go without knowing what is offered.
			for _, w := range h.workloads.all() {
				h.enqueueDefinitions(w)
			}
		}
	case hubCRDKind:
		h.handleCRD(e)
	case hubSecretKind:
		if e.Type == kindwatch.StateChanged {
			h.enqueueAll()
			return
		}
		h.handleSecrets(e)
	case hubComposedSecretKind:
		h.handleComposed(e)
	default:
		h.handleClaim(e)
	}
}

func (h *hub) handleCRD(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			h.refreshPublished()
			for _, w := range h.workloads.all() {
				h.enqueueDefinitions(w)
			}
		}
		return
	}
	name := e.Object.GetName()
	if isLegacyCRD(name) {
		h.refreshLegacy()
		if e.Type == kindwatch.Deleted {
			h.refreshPublished()
		}
	}
	resource := schema.ParseGroupResource(name)
	h.watcher.Poke(resource)
	_, offered, _ := h.publication(name)
	for _, w := range h.workloads.all() {
		if offered || slices.Contains(w.definitionNames(), name) {
			h.definitions.add(definitionRequest(w.name, name))
		}
		// A claim that is being deleted may have waited for the kind to be gone for good.
		if e.Type == kindwatch.Deleted {
			h.enqueueKind(w, resource, h.requirements.add)
		}
	}
}

// handleSecrets finds the claims to which a Secret belongs and belonged.
func (h *hub) handleSecrets(e kindwatch.Event) {
	h.handleSecret(e, e.Object)
	if e.Old != nil && !equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(e.Old), metav1.GetControllerOfNoCopy(e.Object)) {
		h.handleSecret(e, e.Old)
	}
}

// handleSecret finds the claim whose connection Secret changed. The Secret itself says whose it is; that is checked
// against the claim's UID by whoever copies it.
func (h *hub) handleSecret(e kindwatch.Event, secret *unstructured.Unstructured) {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return
	}
	for _, p := range h.watchedKinds() {
		if p.Group != gv.Group || p.Kind != owner.Kind {
			continue
		}
		claim, err := h.watcher.Get(p, types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name})
		if err == nil && claim.GetUID() == owner.UID {
			h.enqueueSource(p, claim, e.Initial)
		}
	}
}

func (h *hub) handleClaim(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		// Whoever found the kind not synced has been waiting for this.
		for _, w := range h.workloads.all() {
			h.enqueueKind(w, e.Kind.GroupResource(), h.requirements.addInitial)
		}
		return
	}
	key := hubKey{kind: e.Kind, NamespacedName: types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}}
	h.track(key, e)
	for _, r := range h.waitingFor(key) {
		h.requirements.add(r)
	}
	if e.Old != nil {
		if before, _ := sourceOf(e.Old); before != mustSource(e.Object) {
			h.enqueueSource(e.Kind, e.Old, e.Initial)
		}
	}
	// The claim's own reconcile knows what it wrote; whoever waits for that place does not.
	if !e.Echo {
		h.enqueueSource(e.Kind, e.Object, e.Initial)
	}
}

func mustSource(obj *unstructured.Unstructured) source {
	s, _ := sourceOf(obj)
	return s
}

// track keeps the index of origins.
func (h *hub) track(key hubKey, e kindwatch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Old != nil {
		h.untrack(key, e.Old)
	}
	if e.Type == kindwatch.Deleted {
		h.untrack(key, e.Object)
		return
	}
	s, named := sourceOf(e.Object)
	if !named || len(h.watched[e.Kind]) == 0 {
		return
	}
	h.origins.insert(origin{source: s, kind: e.Kind, name: e.Object.GetName()}, key)
}

func (h *hub) untrack(key hubKey, obj *unstructured.Unstructured) {
	s, named := sourceOf(obj)
	if !named {
		return
	}
	h.origins.remove(origin{source: s, kind: key.kind, name: key.Name}, key)
}

// observe takes in what the hub answered to a write or a live read, before the watch reports it.
func (h *hub) observe(key hubKey, obj *unstructured.Unstructured) {
	h.watcher.Observe(key.kind, obj)
	h.track(key, kindwatch.Event{Type: kindwatch.Added, Kind: key.kind, Object: obj})
}

// placesOf returns where in the hub objects name an origin. What the watch does not know, or not any more, is no place: the event that says so
// can be under way.
func (h *hub) placesOf(o origin) []hubKey {
	h.mu.Lock()
	places := h.origins.places(o)
	h.mu.Unlock()
	out := places[:0]
	for _, key := range places {
		obj, err := h.watcher.Get(key.kind, key.NamespacedName)
		if apierrors.IsNotFound(err) || err == nil && mustSource(obj) != o.source {
			continue
		}
		out = append(out, key)
	}
	return out
}

// enqueueSource queues the claim from which an object of the hub comes, if its cluster is enrolled.
func (h *hub) enqueueSource(kind kindwatch.Kind, obj *unstructured.Unstructured, initial bool) {
	s, named := sourceOf(obj)
	if !named || s.identifier == "" {
		return
	}
	cluster, ok := h.fleet.ByIdentifier(s.identifier)
	if !ok {
		return
	}
	add := h.requirements.add
	if initial {
		add = h.requirements.addInitial
	}
	add(Request{
		ClusterName: cluster.Name, Kind: kind,
		NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: obj.GetName()},
	})
}

// enqueueKind queues every claim of a kind in a workload cluster.
func (h *hub) enqueueKind(w *workload, resource schema.GroupResource, add func(...Request)) {
	for _, kind := range w.claimKinds() {
		if kind.GroupResource() != resource {
			continue
		}
		claims, err := w.watcher.List(kind)
		if err != nil {
			continue
		}
		for _, c := range claims {
			add(w.request(kind, c))
		}
	}
}

// enqueueAll queues every claim of every workload cluster.
func (h *hub) enqueueAll() {
	for _, w := range h.workloads.all() {
		for _, kind := range w.claimKinds() {
			h.enqueueKind(w, kind.GroupResource(), h.requirements.addInitial)
		}
	}
}

// wait makes a request wait for a change at a place of the hub, and at no other.
func (h *hub) wait(key hubKey, r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopWaitingLocked(r)
	h.waiting.Insert(key, r)
	h.waitsAt.set(r, key)
}

// stopWaiting is the opposite of wait.
func (h *hub) stopWaiting(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopWaitingLocked(r)
}

func (h *hub) stopWaitingLocked(r Request) {
	key, ok := h.waitsAt.get(r)
	if !ok {
		return
	}
	h.waitsAt.delete(r)
	h.waiting.Delete(key, r)
}

func (h *hub) waitingFor(key hubKey) []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting.Values(key)
}
