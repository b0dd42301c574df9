// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A source is two names, and names are given again. A namespace that is deleted while its cluster is not connected leaves its
// objects in the hub; whoever gets a namespace of that name later must not get the databases and passwords of the team
// before. So the hub's objects also bear the UID of the namespace that they come from.
//
// A cluster that replaces a lost one under the same identifier takes over what that one had, and all of its namespaces have
// new UIDs. So the UID of the cluster's namespace kube-system is there too, and UIDs of namespaces are compared only if it
// is the same. Whoever replaces a cluster vouches for its namespaces.

// residence is the cluster and the namespace that bear the names of a source now.
type residence struct{ cluster, namespace types.UID }

// known is whether both are known.
func (h residence) known() bool { return h.cluster != "" && h.namespace != "" }

// residenceOf is the residence that an object of the hub names. One from before there were such annotations names none.
func residenceOf(obj metav1.Object) residence {
	annotations := obj.GetAnnotations()
	return residence{
		cluster:   types.UID(annotations[fleetv1alpha1.SourceClusterUIDAnnotation]),
		namespace: types.UID(annotations[fleetv1alpha1.SourceNamespaceUIDAnnotation]),
	}
}

// annotations are what marks an object of the hub as coming from the residence; none if it is not known.
func (h residence) annotations() map[string]string {
	if !h.known() {
		return nil
	}
	return map[string]string{
		fleetv1alpha1.SourceClusterUIDAnnotation:   string(h.cluster),
		fleetv1alpha1.SourceNamespaceUIDAnnotation: string(h.namespace),
	}
}

// succeeds is whether the residence is a namespace that bears the name of one that was there before in the same cluster, and
// that an object of the hub belonged to. What is not known succeeds nobody.
func (h residence) succeeds(obj metav1.Object) bool {
	was := residenceOf(obj)
	return h.known() && was.known() && was.cluster == h.cluster && was.namespace != h.namespace
}

// ownership is whose an object of the hub is, from the point of view of the claim.
func (s *scope) ownership(obj metav1.Object) ownership {
	owned := ownershipOf(true, obj, s.us)
	if owned == ownershipOurs && s.home.succeeds(obj) {
		return ownershipFormer
	}
	return owned
}

// owns is whether an object of the hub is the claim's.
func (s *scope) owns(obj metav1.Object) bool { return s.ownership(obj) == ownershipOurs }

// namespaceRecreated is why a claim does not get what an earlier namespace of the same name had.
func namespaceRecreated(kind, target, name string, us source) *problem {
	return &problem{
		reason: ReasonNamespaceRecreated,
		message: fmt.Sprintf("The %s %q in the namespace %q of the hub belongs to an earlier namespace %q of this cluster, which was deleted. "+
			"Its infrastructure and its Secrets are not given to another namespace of that name. Choose another name, or have the object deleted in "+
			"the hub, or annotated there with %s: %s.", kind, name, target, us.namespace, fleetv1alpha1.AdoptableByAnnotation, us),
	}
}
