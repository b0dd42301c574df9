// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health is how an object, or all of an Application, fares.
//
// +kubebuilder:validation:Enum=Healthy;Suspended;Progressing;Unknown;Missing;Degraded
type Health string

// The values of Health, from best to worst: an Application is as healthy as the worst of its components.
const (
	// HealthHealthy: it is as its owner wants it, and works as far as its status tells.
	HealthHealthy Health = "Healthy"

	// HealthSuspended: its owner has paused it.
	HealthSuspended Health = "Suspended"

	// HealthProgressing: it is on its way to what its owner wants, or to its end.
	HealthProgressing Health = "Progressing"

	// HealthUnknown: it could not be looked at, or says nothing about itself that can be understood.
	HealthUnknown Health = "Unknown"

	// HealthMissing: it is not there.
	HealthMissing Health = "Missing"

	// HealthDegraded: it has failed, and does not mend by itself.
	HealthDegraded Health = "Degraded"
)

// MaxOwnedKinds is how many kinds a status lists at most as owned.
const MaxOwnedKinds = 512

// MaxStatusEntries is how many components, and how many dependencies, a status lists at most.
const MaxStatusEntries = 64

// ApplicationStatus is what of an Application is there, and how it fares.
type ApplicationStatus struct {
	// observedGeneration is the generation of the Application that this status was computed for; -1 before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// installed are the names of the components and the dependencies that are installed, in alphabetical order. A name that
	// both a component and a dependency have is there when both are installed.
	// +kubebuilder:validation:MaxItems=320
	// +listType=atomic
	// +optional
	Installed []string `json:"installed,omitempty"`

	// ready is the status of the condition Ready of the health check's Pod: True, False or Unknown. Without a health check it is
	// always Unknown, as the KEP wants it; the condition Ready of the Application sums everything up.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +optional
	Ready corev1.ConditionStatus `json:"ready,omitempty"`

	// componentsInstalled is how many of the components are installed, in the form "4/5". This field and all that follow are
	// Masthead's, not the KEP's.
	// +optional
	ComponentsInstalled string `json:"componentsInstalled,omitempty"`

	// health is that of the worst component: Healthy, Suspended, Progressing, Unknown, Missing or Degraded. It is Unknown for
	// an Application without components.
	// +optional
	Health Health `json:"health,omitempty"`

	// message is about what is worst, for people. It is empty if all is well.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// conditions of the Application: Ready (it is installed and healthy, and passes its health check, if it has one), Installed (every
	// component and dependency is), Healthy (what the components say of themselves), HealthCheckPassed (what the health check says),
	// ComponentsWatched (Masthead can see the components) and, only while somebody has to do something, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// counts are the numbers of components in each state.
	// +optional
	Counts *ComponentCounts `json:"counts,omitempty"`

	// components are the components, those that are not well first, and no more than 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Components []ComponentStatus `json:"components,omitempty"`

	// discovered are the objects that were found by spec.discover, those that are not well first, and no more than 64. Where a kind or a
	// namespace cannot be seen, an entry says so.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Discovered []DiscoveredStatus `json:"discovered,omitempty"`

	// history are the last changes of health, the latest first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	History []HealthChange `json:"history,omitempty"`

	// dependencies are the Applications that this one depends on, those that are not installed first, and no more than 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Dependencies []DependencyStatus `json:"dependencies,omitempty"`

	// truncated says that there are more components, or discovered objects, than are listed. The counts are of all.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// healthCheckPod is the name of the health check's Pod.
	// +optional
	HealthCheckPod string `json:"healthCheckPod,omitempty"`

	// ownedKinds are the kinds of which the Application owns objects. A kind is listed before the first owner reference is
	// written. One that the spec does not name any more stays until the references to the Application are removed from all
	// of its objects.
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	OwnedKinds []metav1.GroupVersionKind `json:"ownedKinds,omitempty"`
}

// ComponentCounts are numbers of components.
type ComponentCounts struct {
	// total is how many components the Application names, and how many it discovered.
	Total int32 `json:"total"`

	// installed is how many of them are installed.
	Installed int32 `json:"installed"`

	// selected is how many objects belong to the Application, also those that it does not name.
	Selected int32 `json:"selected"`

	// healthy is how many components are Healthy.
	Healthy int32 `json:"healthy"`

	// suspended is how many components are Suspended.
	Suspended int32 `json:"suspended"`

	// progressing is how many components are Progressing.
	Progressing int32 `json:"progressing"`

	// unknown is how many components are Unknown.
	Unknown int32 `json:"unknown"`

	// missing is how many components are Missing.
	Missing int32 `json:"missing"`

	// degraded is how many components are Degraded.
	Degraded int32 `json:"degraded"`

	// ignored is how many components are left out of the health of the Application by their annotation. They are counted in
	// the state that they are in, too.
	Ignored int32 `json:"ignored"`

	// discovered is how many of the components were discovered.
	// +optional
	Discovered int32 `json:"discovered,omitempty"`
}

// ComponentStatus is how a component fares.
type ComponentStatus struct {
	// name of the component.
	// +required
	Name string `json:"name"`

	// group of its kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// version of its kind.
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the component.
	// +optional
	Kind string `json:"kind,omitempty"`

	// installed is True, False, or Unknown if Masthead cannot look.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Installed corev1.ConditionStatus `json:"installed"`

	// health of the component.
	// +required
	Health Health `json:"health"`

	// ignored says that the component has the annotation apps.masthead.dev/ignore-health: "true".
	// +optional
	Ignored bool `json:"ignored,omitempty"`

	// reason for the health, as one word.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says more, for people.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// since is when installed or health last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DiscoveredStatus is how a discovered object fares, or why objects cannot be seen.
type DiscoveredStatus struct {
	// group of its kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// version of its kind.
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`

	// namespace of the object; empty if it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object; empty if the entry is about all objects of the kind.
	// +optional
	Name string `json:"name,omitempty"`

	// installed is True, False for an object that an inventory or the spec names and that is not there, or Unknown if Masthead cannot
	// look.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Installed corev1.ConditionStatus `json:"installed"`

	// health of the object.
	// +required
	Health Health `json:"health"`

	// ignored says that the object has the annotation apps.masthead.dev/ignore-health: "true".
	// +optional
	Ignored bool `json:"ignored,omitempty"`

	// reason for the health, as one word.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says more, for people.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// since is when installed or health last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// MaxHistory is how many changes of health a status lists at most.
const MaxHistory = 10

// HealthChange is a change of the health of an Application.
type HealthChange struct {
	// time of the change.
	// +required
	Time metav1.Time `json:"time"`

	// health from then on.
	// +required
	Health Health `json:"health"`

	// message of the Application at that time.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// DependencyStatus is whether a dependency is there.
type DependencyStatus struct {
	// name of the Application.
	// +required
	Name string `json:"name"`

	// installed is True if there is an Application of that name in the namespace, False if not, Unknown if Masthead cannot look.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Installed corev1.ConditionStatus `json:"installed"`

	// ready is what that Application says of itself.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +optional
	Ready corev1.ConditionStatus `json:"ready,omitempty"`

	// health is what that Application says of itself.
	// +optional
	Health Health `json:"health,omitempty"`

	// since is when installed last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}
