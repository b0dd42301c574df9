// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// LabelValue is the value of the label masthead.dev/managed-by.
const LabelValue = fleetv1alpha1.FieldManager

// Marks are what the metadata of an object in a workload cluster say about whose it is. They are a value, so that two
// of them can be compared. The owner of the cluster can forge them.
type Marks struct {
	// labelled is whether a Masthead put it there, and hub the name of the hub in its labels.
	labelled bool
	hub      string

	// controlled is whether it has a controller.
	controlled bool
}

// MarksOf reads the marks of an object.
func MarksOf(obj metav1.Object) Marks {
	labels := obj.GetLabels()
	return Marks{
		labelled: labels[fleetv1alpha1.ManagedByLabel] == LabelValue, hub: labels[fleetv1alpha1.HubLabel],
		controlled: metav1.GetControllerOfNoCopy(obj) != nil,
	}
}

// IsMastheads is whether the object was put there by the Masthead of whichever hub.
func (m Marks) IsMastheads() bool { return m.labelled }

// IsControlled is whether the object has a controller. One that has is that one's, although it still bears our label: a
// Crossplane that is installed in the cluster later, say, has taken it over. Discovery alone does not ask: a Crossplane
// that works with copies is found out by other signs, and keeps them.
func (m Marks) IsControlled() bool { return m.controlled }

// AreOf is whether the object was put there by the Masthead of this hub, or of one that it took over from, and nobody
// has taken it over since.
func (m Marks) AreOf(owner hubidentity.Owner) bool {
	return m.labelled && !m.controlled && owner.OwnsName(m.hub)
}

// OtherHub is the hub that put the object there, if that is another one.
func (m Marks) OtherHub(owner hubidentity.Owner) (hubidentity.Identity, bool) {
	if !m.labelled {
		return "", false
	}
	return owner.Other(&metav1.ObjectMeta{Labels: map[string]string{fleetv1alpha1.HubLabel: m.hub}})
}

// AreStamped is whether the object bears the labels with which this hub writes now.
func (m Marks) AreStamped(owner hubidentity.Owner) bool {
	return m.labelled && m.hub == string(owner.ID)
}
