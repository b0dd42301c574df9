// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A source is two names, and names are given again. A namespace that is deleted while its cluster is not connected
// leaves its objects in the hub; whoever gets a namespace of that name later must not get the databases and passwords
// of the team before. So the hub's objects also bear the UID of the namespace that they come from.
//
// A cluster that replaces a lost one under the same identifier takes over what that one had, and all of its namespaces
// have new UIDs. So the UID of the cluster's namespace kube-system is there too, and UIDs of namespaces are compared
// only if it is the same. Whoever replaces a cluster vouches for its namespaces.

// Residence is the cluster and the namespace that bear the names of a source now.
type Residence struct{ Cluster, Namespace types.UID }

// known is whether both are known.
func (h Residence) known() bool { return h.Cluster != "" && h.Namespace != "" }

// ResidenceOf is the residence that an object of the hub names. One from before there were such annotations names none.
func ResidenceOf(obj metav1.Object) Residence {
	cluster, _ := annotationOf(obj, fleetv1alpha1.SourceClusterUIDAnnotation)
	namespace, _ := annotationOf(obj, fleetv1alpha1.SourceNamespaceUIDAnnotation)
	return Residence{Cluster: types.UID(cluster), Namespace: types.UID(namespace)}
}

// Annotations are what marks an object of the hub as coming from the residence; none if it is not known.
func (h Residence) Annotations() map[string]string {
	if !h.known() {
		return nil
	}
	return map[string]string{
		fleetv1alpha1.SourceClusterUIDAnnotation:   string(h.Cluster),
		fleetv1alpha1.SourceNamespaceUIDAnnotation: string(h.Namespace),
	}
}

// Succeeds is whether the residence is a namespace that bears the name of one that was there before in the same
// cluster, and that an object of the hub belonged to. What is not known succeeds nobody.
func (h Residence) Succeeds(obj metav1.Object) bool {
	was := ResidenceOf(obj)
	return h.known() && was.known() && was.Cluster == h.Cluster && was.Namespace != h.Namespace
}
