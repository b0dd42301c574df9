// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Crossplane writes no connection Secret for a namespaced composite. Instead, its composition composes Secrets, which
// Crossplane labels with the composite's name and makes the composite control. All of them are copied to the workload
// cluster under their names in the hub, except those that the composition's author keeps in the hub with the label
// agent.masthead.dev/deliver.
//
// The label only narrows the watch: anybody who can write Secrets in the hub can set it. The controller's UID decides.

// HubComposedSecretKind watches the metadata of composed Secrets in the hub, only while the hub publishes composites.
// ServiceAccount tokens are excluded: they are credentials for the hub itself, regardless of what a composition created
// them for. It keeps no more metadata than crossplane.HubSecretKind.
var HubComposedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
	GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
	Resource:         "secrets",
	MetadataOnly:     true,
	OnlyAnnotations:  kindwatch.NoAnnotations,
	OnlyLabels:       fleetv1alpha1.DeliverLabel,
	KeepController:   true,
	LabelSelector:    "crossplane.io/composite",
	FieldSelector:    "type!=" + string(corev1.SecretTypeServiceAccountToken),
}

// watchComposed watches composed Secrets while composites are published.
func (h *Hub) watchComposed() {
	for _, p := range h.publications() {
		if p.Form == crossplane.FormComposite {
			h.Watcher.Set(ownerComposed, HubComposedSecretKind)
			return
		}
	}
	h.Watcher.Set(ownerComposed)
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.composed.Index)
}

// handleComposed indexes composed Secrets, and enqueues the composite whose Secret changed.
func (h *Hub) handleComposed(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		for _, p := range h.publications() {
			if p.Form != crossplane.FormComposite {
				continue
			}
			for _, w := range h.Clusters.All() {
				h.EnqueueKind(w, p.Kind.GroupResource(), h.Requirements.AddInitial)
			}
		}
		return
	}
	h.mu.Lock()
	h.composed.track(e)
	h.mu.Unlock()
	h.handleSecrets(e)
}

// ComposedSecrets returns the names of the Secrets that a composite controls, in its own namespace.
func (h *Hub) ComposedSecrets(composite *unstructured.Unstructured) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.composed.names(composite)
}
