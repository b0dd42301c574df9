// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// source is where a claim comes from.
type source struct {
	// identifier is that of the workload cluster.
	identifier string

	// namespace is the claim's, in the workload cluster.
	namespace string
}

// annotations are what marks a claim in the hub as coming from the source.
func (s source) annotations() map[string]string {
	return map[string]string{
		fleetv1alpha1.SourceUIDAnnotation:       s.identifier,
		fleetv1alpha1.SourceNamespaceAnnotation: s.namespace,
	}
}

// String is the source as annotations name it. A namespace has no slash, so that no two sources are the same text.
func (s source) String() string { return s.identifier + "/" + s.namespace }

// sourceOf returns the source that an object of the hub names. An object with only one of the annotations names a source
// that is nobody's.
func sourceOf(obj metav1.Object) (source, bool) {
	identifier, hasIdentifier := obj.GetAnnotations()[fleetv1alpha1.SourceUIDAnnotation]
	namespace, hasNamespace := obj.GetAnnotations()[fleetv1alpha1.SourceNamespaceAnnotation]
	return source{identifier: identifier, namespace: namespace}, hasIdentifier || hasNamespace
}

// ownership is whose an object of the hub is, from the point of view of one source.
type ownership string

const (
	// ownershipNone: there is no object.
	ownershipNone ownership = "None"

	// ownershipOurs: the object names our source.
	ownershipOurs ownership = "Ours"

	// ownershipForeign: the object names another source.
	ownershipForeign ownership = "Foreign"

	// ownershipFormer: the object names our source, and belonged to an earlier namespace of our name; see residence.
	ownershipFormer ownership = "Former"

	// ownershipUnowned: the object names no source, somebody created it in the hub.
	ownershipUnowned ownership = "Unowned"
)

// ownershipOf decides whose an object of the hub is. An unowned object is not free for the taking: whoever made it did not
// make it for the source that happens to have a claim of the same name. An empty identifier owns nothing.
func ownershipOf(exists bool, obj metav1.Object, us source) ownership {
	if !exists {
		return ownershipNone
	}
	s, named := sourceOf(obj)
	switch {
	case !named:
		return ownershipUnowned
	case s == us && us.identifier != "" && us.namespace != "":
		return ownershipOurs
	}
	return ownershipForeign
}

// conflict is the condition of a claim whose place in the hub is taken. It names the holder by what the hub's administrator
// chose to let clusters know of each other, the identifier and the namespace, and nothing else of the holder's object.
func conflict(kind, target, name, holder string) *problem {
	return &problem{
		reason: ReasonConflict,
		message: fmt.Sprintf("The name %q of kind %s in the namespace %q of the hub is taken by %s. Nothing was written; "+
			"this claim is synchronised as soon as the name is free.", name, kind, target, holder),
	}
}

// holderOf names who has a name in the hub.
func holderOf(holder metav1.Object) string {
	s, named := sourceOf(holder)
	by := "an object that was created in the hub"
	if named {
		by = fmt.Sprintf("the namespace %q of the cluster with the identifier %q", s.namespace, s.identifier)
	}
	if from := holder.GetAnnotations()[fleetv1alpha1.ReleasedFromAnnotation]; !named && from != "" {
		by = "an object that a claim which was deleted has left in the hub"
	}
	return by
}
