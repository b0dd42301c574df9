// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// LabelValue is the value of the label masthead.dev/managed-by.
const LabelValue = fleetv1alpha1.FieldManager

// Marks are the ownership metadata of an object in a workload cluster. They are a comparable value. The owner of the
// cluster can forge them.
type Marks struct {
	// labelled reports whether it has Masthead's managed-by label, and hub is the name of the hub in its labels.
	labelled bool
	hub      string

	// controlled reports whether it has a controller reference.
	controlled bool
}

// GetMarks reads the marks of an object.
func GetMarks(obj metav1.Object) Marks {
	labels := obj.GetLabels()
	return Marks{
		labelled: labels[fleetv1alpha1.ManagedByLabel] == LabelValue, hub: labels[fleetv1alpha1.HubLabel],
		controlled: metav1.GetControllerOfNoCopy(obj) != nil,
	}
}

// IsMastheads reports whether the object was created by the Masthead of any hub.
func (m Marks) IsMastheads() bool { return m.labelled }

// IsControlled reports whether the object has a controller reference. Its controller then owns it, even if it still has
// Masthead's label: for example, a Crossplane installed later has taken it over. Only discovery does not check this: it
// detects by other signs a Crossplane that works with copies, and leaves them to it.
func (m Marks) IsControlled() bool { return m.controlled }

// BelongTo reports whether the object was created by the Masthead of this hub, or of one that it took over from, and
// has not been taken over since.
func (m Marks) BelongTo(owner hubidentity.Owner) bool {
	return m.labelled && !m.controlled && owner.OwnsName(m.hub)
}

// OtherHub returns the hub that created the object, if that is another one.
func (m Marks) OtherHub(owner hubidentity.Owner) (hubidentity.Identity, bool) {
	if !m.labelled {
		return "", false
	}
	return owner.Other(&metav1.ObjectMeta{Labels: map[string]string{fleetv1alpha1.HubLabel: m.hub}})
}

// AreStamped reports whether the object has the labels that this hub writes now.
func (m Marks) AreStamped(owner hubidentity.Owner) bool {
	return m.labelled && m.hub == string(owner.ID)
}
