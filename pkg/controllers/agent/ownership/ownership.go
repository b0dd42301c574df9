// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ControlledBy reports whether owner is an object's controller, by UID.
func ControlledBy(obj metav1.Object, owner metav1.Object) bool {
	c := metav1.GetControllerOfNoCopy(obj)
	return c != nil && owner.GetUID() != "" && c.UID == owner.GetUID()
}

// Source is where a claim comes from.
type Source struct {
	// Identifier is that of the workload cluster.
	Identifier string

	// Namespace is the claim's, in the workload cluster.
	Namespace string
}

// Annotations returns the annotations that mark a claim in the hub as coming from the source.
func (s Source) Annotations() map[string]string {
	return map[string]string{
		fleetv1alpha1.SourceUIDAnnotation:       s.Identifier,
		fleetv1alpha1.SourceNamespaceAnnotation: s.Namespace,
	}
}

// String is the source as annotations name it. A namespace has no slash, so that the text is unique.
func (s Source) String() string { return s.Identifier + "/" + s.Namespace }

// GetSource returns the source that an object of the hub names. An object with only one of the annotations names a
// source that no cluster has.
func GetSource(obj metav1.Object) (Source, bool) {
	identifier, hasIdentifier := mark(obj, fleetv1alpha1.SourceUIDAnnotation)
	namespace, hasNamespace := mark(obj, fleetv1alpha1.SourceNamespaceAnnotation)
	return Source{Identifier: identifier, Namespace: namespace}, hasIdentifier || hasNamespace
}

// FormerSource returns the source whose deleted claim left an object in the hub, if one did.
func FormerSource(obj metav1.Object) (Source, bool) {
	if _, named := GetSource(obj); named {
		return Source{}, false
	}
	from, _ := mark(obj, fleetv1alpha1.ReleasedFromAnnotation)
	at := strings.LastIndex(from, "/")
	if at <= 0 {
		return Source{}, false
	}
	return Source{Identifier: from[:at], Namespace: from[at+1:]}, true
}

// State is the ownership of an object in the hub, as seen by one source.
type State string

const (
	// None means that there is no object.
	None State = "None"

	// Ours means that the object names our source.
	Ours State = "Ours"

	// Foreign means that the object names another source.
	Foreign State = "Foreign"

	// Former means that the object names our source, and belonged to an earlier namespace of our name; see residence.
	Former State = "Former"

	// Unowned means that the object names no source: it was created in the hub.
	Unowned State = "Unowned"
)

// Classify returns the ownership of an object in the hub. An unowned object may not simply be taken: it was not made
// for the source that happens to have a claim of the same name. An empty identifier owns nothing.
func Classify(exists bool, obj metav1.Object, us Source) State {
	if !exists {
		return None
	}
	s, named := GetSource(obj)
	switch {
	case !named:
		return Unowned
	case s == us && us.Identifier != "" && us.Namespace != "":
		return Ours
	}
	return Foreign
}

// DescribeHolder names the holder of a name in the hub.
func DescribeHolder(holder metav1.Object) string {
	s, named := GetSource(holder)
	by := "an object that was created in the hub"
	if named {
		by = fmt.Sprintf("the namespace %q of the cluster with the identifier %q", s.Namespace, s.Identifier)
	}
	if from, _ := getAnnotation(holder, fleetv1alpha1.ReleasedFromAnnotation); !named && from != "" {
		by = "an object that a deleted claim left in the hub"
	}
	return by
}

// SecretVersion identifies a state of a Secret of the hub.
func SecretVersion(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// Place names a claim in the hub, or a place where one could be. Its kind is in the version in which the hub is read.
type Place struct {
	Kind kindwatch.Kind
	types.NamespacedName
}

// Origin names a claim in a workload cluster from the hub's point of view. Each side has its own version of the kind.
type Origin struct {
	Source
	Resource schema.GroupResource
	Name     string
}
