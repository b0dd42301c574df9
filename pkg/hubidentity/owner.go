// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubidentity

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Owner is a hub as the owner of what is in one workload cluster. The zero value owns what names no hub. It is a value
// and must not be changed.
type Owner struct {
	// ID is the identity of the hub.
	ID Identity

	// Predecessors are the hubs whose belongings are the hub's now, because it took the cluster over from them.
	Predecessors []Identity
}

// Equal is whether two owners own the same.
func (o Owner) Equal(other Owner) bool {
	return o.ID == other.ID && slices.Equal(o.Predecessors, other.Predecessors)
}

// names are the identities under which the hub finds its own: its own, those of its predecessors, and none.
func (o Owner) names() []Identity {
	return append([]Identity{o.ID, ""}, o.Predecessors...)
}

// Owns is whether an object that Masthead put into the workload cluster is this hub's. That Masthead put it there, the
// caller knows.
func (o Owner) Owns(obj metav1.Object) bool {
	return o.OwnsName(obj.GetLabels()[fleetv1alpha1.HubLabel])
}

// OwnsName is whether an object that names a hub, or none, is this hub's.
func (o Owner) OwnsName(hub string) bool { return slices.Contains(o.names(), Identity(hub)) }

// Other returns the hub that an object names, if that is another one.
func (o Owner) Other(obj metav1.Object) (Identity, bool) {
	if o.Owns(obj) {
		return "", false
	}
	other, err := Parse(obj.GetLabels()[fleetv1alpha1.HubLabel])
	if err != nil {
		return "unknown", true
	}
	return other, true
}

// IsManaged is whether an object bears the label of what Masthead puts into workload clusters, and is this hub's.
func (o Owner) IsManaged(obj metav1.Object) bool {
	return obj.GetLabels()[fleetv1alpha1.ManagedByLabel] == fleetv1alpha1.FieldManager && o.Owns(obj)
}

// Stamp adds to labels those that say that an object is this hub's. It changes the map, and returns it; it makes one of
// nil.
func (o Owner) Stamp(labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleetv1alpha1.ManagedByLabel] = fleetv1alpha1.FieldManager
	if o.ID != "" {
		labels[fleetv1alpha1.HubLabel] = string(o.ID)
	}
	return labels
}

// IsStamped is whether an object has the labels that Stamp adds.
func (o Owner) IsStamped(obj metav1.Object) bool {
	labels := obj.GetLabels()
	return labels[fleetv1alpha1.ManagedByLabel] == fleetv1alpha1.FieldManager && labels[fleetv1alpha1.HubLabel] == string(o.ID)
}

// IsProtected is whether an object has a finalizer of this hub, under whatever name of its.
func (o Owner) IsProtected(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetFinalizers(), o.isFinalizer)
}

// HasFinalizer is whether an object has the finalizer that this hub writes, and none that it would replace.
func (o Owner) HasFinalizer(obj metav1.Object) bool {
	return slices.Equal(obj.GetFinalizers(), o.Protected(obj.GetFinalizers()))
}

// Protected returns finalizers with that of this hub, which takes the place of those of its predecessors.
func (o Owner) Protected(finalizers []string) []string {
	own := o.ID.Finalizer()
	var out []string
	for _, f := range finalizers {
		if !o.isFinalizer(f) {
			out = append(out, f)
			continue
		}
		if !slices.Contains(out, own) {
			out = append(out, own)
		}
	}
	if !slices.Contains(out, own) {
		out = append(out, own)
	}
	return out
}

// Released returns finalizers without any of this hub.
func (o Owner) Released(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), o.isFinalizer)
}

func (o Owner) isFinalizer(f string) bool {
	return slices.ContainsFunc(o.names(), func(i Identity) bool { return i.Finalizer() == f })
}

// FieldManager is the field manager with which this hub writes, instead of a general one.
func (o Owner) FieldManager(general string) string { return o.ID.FieldManager(general) }

// FormerFieldManagers are the field managers under which this hub's belongings were written before.
func (o Owner) FormerFieldManagers(general string) []string {
	var out []string
	for _, i := range o.names() {
		if i != o.ID {
			out = append(out, i.FieldManager(general))
		}
	}
	return out
}
