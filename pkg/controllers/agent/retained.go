// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// maxRetainedKinds is how many kinds of a cluster are followed that the hub does not offer to it. A cluster whose owner
// labels more definitions than any hub ever withdrew does so for another purpose.
const maxRetainedKinds = 100

// followed is a kind of claims that is followed in a workload cluster.
type followed struct {
	kind kindwatch.Kind

	// inHub is whether the kind is followed in the hub because of this cluster. The hub says so, never the cluster alone.
	inHub bool

	// retained is whether the kind is not offered, and followed only because the cluster has claims of it.
	retained bool

	// deletionsOnly is whether nothing is done but to let claims go that bear our finalizer: the definition is not
	// Masthead's any more.
	deletionsOnly bool
}

// retainedKind decides how a kind is followed of which a workload cluster has a definition with our label, and which is not
// offered. The label is no proof, because the owner of the cluster can write it. So the definition counts only if it is of the
// form of a claim's, and then:
//
//   - if the hub has a definition of that name, only if that is one that Crossplane made for requirements, of the same kind. Its
//     kind is then followed in the hub, too, in a version that both serve;
//   - if the hub has none, there is nothing in the hub to be deleted, and the kind is followed in the workload cluster only.
func retainedKind(crd, hub *unstructured.Unstructured) (followed, bool) {
	kind, ok := claimKindOf(crd)
	if !ok {
		return followed{}, false
	}
	if hub == nil {
		return followed{kind: kind, retained: true}, true
	}
	theirs, ok := claimKindOf(hub)
	if !ok || !isPublishedDefinition(hub) || theirs.GroupKind() != kind.GroupKind() || theirs.Resource != kind.Resource {
		return followed{}, false
	}
	both := servedVersions(crd)
	for _, version := range append([]string{theirs.Version}, servedVersions(hub)...) {
		if slices.Contains(both, version) {
			theirs.Version = version
			return followed{kind: theirs, inHub: true, retained: true}, true
		}
	}
	return followed{}, false
}

// isPublishedDefinition is whether Crossplane made a definition in the hub for requirements: for claims, for namespaced
// composites, or for what an InfrastructurePublication publishes. Of those, 0.12 says that the InfrastructureDefinition
// controls them. Whether the definition is of the form of a requirement's has been looked at before.
func isPublishedDefinition(crd *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(crd)
	if owner == nil {
		return false
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != xrdKind.Group {
		return false
	}
	switch owner.Kind {
	case xrdKind.Kind:
		categories, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "categories")
		return slices.Contains(categories, "claim") || slices.Contains(categories, "composite")
	case infrastructurePublicationKind.Kind, infrastructureDefinitionKind.Kind:
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		return strings.HasSuffix(kind, requirementKindSuffix)
	}
	return false
}

// isAnothers is whether a definition with our label is, going by its metadata, what another controller of Masthead puts into clusters:
// copies of Crossplane's own, and that of Applications. Neither is read, to find that it is no definition of claims. The annotation alone
// does not say so, since the owner of the cluster can write it on any.
func isAnothers(crd *unstructured.Unstructured) bool {
	_, group, _ := strings.Cut(crd.GetName(), ".")
	return group == appsv1alpha1.GroupVersion.Group ||
		group == xrdKind.Group && crd.GetAnnotations()[fleetv1alpha1.MirroredAnnotation] != ""
}

// claimKindOf returns the kind that a definition defines, if it could be that of claims. That of Applications, which bears our
// label as well, never is: it is another controller's, and no hub offers it.
func claimKindOf(crd *unstructured.Unstructured) (kindwatch.Kind, bool) {
	kind, ok := kindOfDefinition(crd)
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return kind, ok && kind.Validate() == nil && kind.Group != appsv1alpha1.GroupVersion.Group &&
		crd.GetName() == kind.GroupResource().String() && scope == "Namespaced"
}

func servedVersions(crd *unstructured.Unstructured) []string {
	var out []string
	for _, v := range versionsOf(crd) {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// bearsFinalizer is whether a claim has our finalizer.
func (w *workload) bearsFinalizer(claim *unstructured.Unstructured) bool {
	return w.owner().IsProtected(claim)
}

// judgement identifies the states of the definitions on both sides on which retainedKind decides, so that they need not be
// read again while they are the same. known is false as long as nobody could look.
func (h *hub) judgement(crd *unstructured.Unstructured, name string) (states string, known bool) {
	hub, err := h.watcher.Get(hubCRDKind, types.NamespacedName{Name: name})
	if client.IgnoreNotFound(err) != nil {
		return "", false
	}
	if crd == nil {
		return "", true
	}
	states = versionOf(crd)
	if err == nil {
		states += " " + versionOf(hub)
	}
	return states, true
}

func (w *workload) isJudged(crd, states string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return states != "" && w.judged[crd] == states
}

func (w *workload) setJudged(crd, states string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if states == "" {
		delete(w.judged, crd)
		return
	}
	w.judged[crd] = states
}
