// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubidentity

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Owner is a hub as the owner of objects in one workload cluster. The zero value owns objects that name no hub. It is
// an immutable value.
type Owner struct {
	// ID is the identity of the hub.
	ID Identity

	// Predecessors are the hubs whose objects the hub now owns, because it took the cluster over from them.
	Predecessors []Identity
}

// Equal reports whether two owners own the same objects.
func (o Owner) Equal(other Owner) bool {
	return o.ID == other.ID && slices.Equal(o.Predecessors, other.Predecessors)
}

// names returns the identities that mark the hub's objects: its own, those of its predecessors, and none.
func (o Owner) names() []Identity {
	return append([]Identity{o.ID, ""}, o.Predecessors...)
}

// Owns reports whether this hub owns an object. The caller knows that Masthead put it into the workload cluster.
func (o Owner) Owns(obj metav1.Object) bool {
	return o.OwnsName(obj.GetLabels()[fleetv1alpha1.HubLabel])
}

// OwnsName reports whether this hub owns an object that names the given hub, or none.
func (o Owner) OwnsName(hub string) bool { return slices.Contains(o.names(), Identity(hub)) }

// Other returns the hub that an object names, if it is a different one.
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

// IsManaged reports whether an object has the label of objects managed in workload clusters, and is this hub's.
func (o Owner) IsManaged(obj metav1.Object) bool {
	return obj.GetLabels()[fleetv1alpha1.ManagedByLabel] == fleetv1alpha1.FieldManager && o.Owns(obj)
}

// Stamp adds the labels that mark an object as this hub's. It changes and returns the map; it makes one for nil.
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

// IsStamped reports whether an object has the labels that Stamp adds.
func (o Owner) IsStamped(obj metav1.Object) bool {
	labels := obj.GetLabels()
	return labels[fleetv1alpha1.ManagedByLabel] == fleetv1alpha1.FieldManager && labels[fleetv1alpha1.HubLabel] == string(o.ID)
}

// IsProtected reports whether an object has a finalizer of this hub, under any of its names.
func (o Owner) IsProtected(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetFinalizers(), o.isFinalizer)
}

// HasFinalizer reports whether an object has this hub's current finalizer, and none that it would replace.
func (o Owner) HasFinalizer(obj metav1.Object) bool {
	return slices.Equal(obj.GetFinalizers(), o.Protected(obj.GetFinalizers()))
}

// Protected returns finalizers with this hub's, which replaces those of its predecessors.
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

// FieldManager returns this hub's field manager, in place of a general one.
func (o Owner) FieldManager(general string) string { return o.ID.FieldManager(general) }

// FormerFieldManagers returns the field managers with which this hub's objects were written before.
func (o Owner) FormerFieldManagers(general string) []string {
	var out []string
	for _, i := range o.names() {
		if i != o.ID {
			out = append(out, i.FieldManager(general))
		}
	}
	return out
}
