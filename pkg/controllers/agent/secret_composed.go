// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A namespaced composite has no connection Secret that Crossplane makes for it. What it is for is in the Secrets that its
// composition composes beside it, which Crossplane labels with the composite's name and makes the composite the controller
// of. All of these are brought to the workload cluster, under the names that they have in the hub, but for those that the
// composition's author keeps in the hub with the label agent.masthead.dev/deliver.
//
// The label only narrows what is watched: anybody who can write Secrets in the hub can set it. The controller's UID decides.

// hubComposedSecretKind are the Secrets of the hub that were composed, without their data. It is watched only while the hub
// publishes composites. Tokens of service accounts are not seen at all: they are credentials for the hub itself, whatever
// a composition made them for.
var hubComposedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
	GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
	Resource:         "secrets",
	MetadataOnly:     true,
	LabelSelector:    "crossplane.io/composite",
	FieldSelector:    "type!=" + string(corev1.SecretTypeServiceAccountToken),
}

// pullComposed brings the Secrets that the hub's composite controls to the workload cluster, and deletes the copies of those
// that it does not compose any more. One that fails does not keep the others from arriving; the first problem is told.
func (r *requirementReconciler) pullComposed(ctx context.Context, s *scope, hub *unstructured.Unstructured) (*problem, time.Duration, error) {
	if state, _ := r.hub.watcher.State(hubComposedSecretKind); state != kindwatch.StateSynced {
		if p := r.secretUnknown(hubComposedSecretKind); p != nil {
			return p, slowRetry(), nil
		}
		return nil, 0, nil // Its becoming known makes a new request.
	}
	if state, _ := s.workload.watcher.State(ownedSecretKind); state != kindwatch.StateSynced {
		return workloadSecretsUnknown(s), 0, nil
	}
	wanted := sets.New(r.hub.composedOf(hub)...)
	for _, name := range s.workload.copiesOf(s.claim.GetUID()) {
		if composes(hub, name) {
			wanted.Insert(name)
		}
	}
	for name := range wanted {
		// Whoever wrote the composition wants it so, and there is nothing to tell.
		if r.withheld(hub, composedDelivery(s, hub, name)) {
			wanted.Delete(name)
		}
	}
	first, retryAfter, err := r.deleteCopies(ctx, s, wanted)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range sets.List(wanted) {
		p, after, err := r.pullOne(ctx, s, hub, composedDelivery(s, hub, name))
		if err != nil {
			return nil, 0, err
		}
		if first == nil {
			first = p
		}
		retryAfter = sooner(retryAfter, after)
	}
	return first, retryAfter, nil
}

func composedDelivery(s *scope, hub *unstructured.Unstructured, name string) delivery {
	return delivery{
		watched: hubComposedSecretKind,
		from:    types.NamespacedName{Namespace: hub.GetNamespace(), Name: name},
		to:      types.NamespacedName{Namespace: s.Namespace, Name: name},
	}
}

// composes is whether a composite that has no such Secret may still be about to compose it: Crossplane has not said yet that
// it has composed everything, or it still refers to the Secret. Crossplane deletes what it does not compose any more before it
// drops the reference. Until then the copy is kept, so that whoever uses it is not cut off while the Secret is made again.
func composes(hub *unstructured.Unstructured, name string) bool {
	if !conditionTrue(hub, "Synced") {
		return true
	}
	references, _, _ := unstructured.NestedSlice(hub.Object, "spec", crossplaneField, "resourceRefs")
	for _, r := range references {
		if r, ok := r.(map[string]any); ok && r["apiVersion"] == "v1" && r["kind"] == "Secret" && r["name"] == name {
			return true
		}
	}
	return false
}

// sooner is the shorter of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// watchComposed watches the composed Secrets as long as composites are published.
func (h *hub) watchComposed() {
	for _, p := range h.publications() {
		if p.form == formComposite {
			h.watcher.Set(ownerComposed, hubComposedSecretKind)
			return
		}
	}
	h.watcher.Set(ownerComposed)
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.composed)
}

// handleComposed keeps the index of composed Secrets, and finds the composite whose Secret changed.
func (h *hub) handleComposed(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		for _, p := range h.publications() {
			if p.form != formComposite {
				continue
			}
			for _, w := range h.workloads.all() {
				h.enqueueKind(w, p.kind.GroupResource(), h.requirements.addInitial)
			}
		}
		return
	}
	h.mu.Lock()
	if e.Old != nil {
		h.unindexComposed(e.Old)
	}
	h.unindexComposed(e.Object)
	if owner := metav1.GetControllerOfNoCopy(e.Object); owner != nil && e.Type != kindwatch.Deleted {
		if h.composed[owner.UID] == nil {
			h.composed[owner.UID] = sets.New[types.NamespacedName]()
		}
		h.composed[owner.UID].Insert(types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()})
	}
	h.mu.Unlock()
	h.handleSecrets(e)
}

func (h *hub) unindexComposed(secret *unstructured.Unstructured) {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return
	}
	h.composed[owner.UID].Delete(types.NamespacedName{Namespace: secret.GetNamespace(), Name: secret.GetName()})
	if h.composed[owner.UID].Len() == 0 {
		delete(h.composed, owner.UID)
	}
}

// composedOf returns the names of the Secrets that a composite controls, in its own namespace.
func (h *hub) composedOf(composite *unstructured.Unstructured) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for key := range h.composed[composite.GetUID()] {
		if key.Namespace == composite.GetNamespace() {
			names = append(names, key.Name)
		}
	}
	return names
}
