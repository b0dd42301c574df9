// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A source is two names, and names are reused. A namespace deleted while its cluster is not connected leaves its
// objects in the hub; a later namespace of that name must not get the databases and passwords of the team before. So
// the hub's objects also carry the UID of the namespace that they come from.
//
// A cluster that replaces a lost one under the same identifier takes over its objects, and all of its namespaces have
// new UIDs. So the UID of the cluster's namespace kube-system is stored too, and UIDs of namespaces are compared only
// if it is the same. Replacing a cluster vouches for its namespaces.

// Residence holds the UIDs of the cluster and the namespace that have a source's names now.
type Residence struct{ Cluster, Namespace types.UID }

// known reports whether both are known.
func (h Residence) known() bool { return h.Cluster != "" && h.Namespace != "" }

// GetResidence returns the residence that an object of the hub names, if any. Objects from before these annotations
// name none.
func GetResidence(obj metav1.Object) Residence {
	cluster, _ := getAnnotation(obj, fleetv1alpha1.SourceClusterUIDAnnotation)
	namespace, _ := getAnnotation(obj, fleetv1alpha1.SourceNamespaceUIDAnnotation)
	return Residence{Cluster: types.UID(cluster), Namespace: types.UID(namespace)}
}

// Annotations returns the annotations that mark an object of the hub with the residence; none if it is unknown.
func (h Residence) Annotations() map[string]string {
	if !h.known() {
		return nil
	}
	return map[string]string{
		fleetv1alpha1.SourceClusterUIDAnnotation:   string(h.Cluster),
		fleetv1alpha1.SourceNamespaceUIDAnnotation: string(h.Namespace),
	}
}

// Succeeds reports whether the residence is a namespace that reuses the name of an earlier one in the same cluster,
// which an object of the hub belonged to. An unknown residence succeeds none.
func (h Residence) Succeeds(obj metav1.Object) bool {
	was := GetResidence(obj)
	return h.known() && was.known() && was.Cluster == h.Cluster && was.Namespace != h.Namespace
}
