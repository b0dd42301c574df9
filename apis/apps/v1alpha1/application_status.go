// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health is the health of an object or an Application.
//
// +kubebuilder:validation:Enum=Healthy;Suspended;Progressing;Unknown;Missing;Degraded
type Health string

// The values of Health, from best to worst: the health of an Application is that of its worst component.
const (
	// HealthHealthy: it matches its spec, and works as far as its status says.
	HealthHealthy Health = "Healthy"

	// HealthSuspended: its owner has paused it.
	HealthSuspended Health = "Suspended"

	// HealthProgressing: it is progressing towards its spec or its completion.
	HealthProgressing Health = "Progressing"

	// HealthUnknown: it could not be observed, or its status is not understood.
	HealthUnknown Health = "Unknown"

	// HealthMissing: it does not exist.
	HealthMissing Health = "Missing"

	// HealthDegraded: it has failed, and does not recover by itself.
	HealthDegraded Health = "Degraded"
)

// MaxOwnedKinds is the maximum number of owned kinds in a status.
const MaxOwnedKinds = 512

// MaxStatusEntries is the maximum number of components, and of dependencies, in a status.
const MaxStatusEntries = 64

// ApplicationStatus is the observed state of an Application.
type ApplicationStatus struct {
	// observedGeneration is the generation of the Application that this status was computed for; -1 before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// installed are the names of the installed components and dependencies, in alphabetical order. A name shared by a
	// component and a dependency is listed when both are installed.
	// +kubebuilder:validation:MaxItems=320
	// +listType=atomic
	// +optional
	Installed []string `json:"installed,omitempty"`

	// ready is the status of the condition Ready of the health check's Pod: True, False or Unknown. Without a health check
	// it is always Unknown, as the KEP specifies; the condition Ready of the Application sums everything up.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +optional
	Ready corev1.ConditionStatus `json:"ready,omitempty"`

	// componentsInstalled is the number of installed components, in the form "4/5". This field and all that follow are
	// Masthead's, not the KEP's.
	// +optional
	ComponentsInstalled string `json:"componentsInstalled,omitempty"`

	// health is that of the worst component: Healthy, Suspended, Progressing, Unknown, Missing or Degraded. It is Unknown
	// for an Application without components.
	// +optional
	Health Health `json:"health,omitempty"`

	// message describes the worst problem. It is empty if there is none.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// conditions of the Application: Ready (it is installed and healthy, and passes its health check, if it has one),
	// Installed (every component and dependency is), Healthy (the health of the components), HealthCheckPassed (the result
	// of the health check), ComponentsWatched (Masthead can see the components) and, only while a user must act, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// counts are the numbers of components by state.
	// +optional
	Counts *ComponentCounts `json:"counts,omitempty"`

	// components are the components, unhealthy ones first, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Components []ComponentStatus `json:"components,omitempty"`

	// discovered are the objects found by spec.discover, unhealthy ones first, at most 64. If a kind or a namespace cannot
	// be seen, an entry says so.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Discovered []DiscoveredStatus `json:"discovered,omitempty"`

	// history are the latest changes of health, the newest first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	History []HealthChange `json:"history,omitempty"`

	// dependencies are the Applications that this one depends on, those that are not installed first, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Dependencies []DependencyStatus `json:"dependencies,omitempty"`

	// truncated says that not all components or discovered objects are listed. The counts include all.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// healthCheckPod is the name of the health check's Pod.
	// +optional
	HealthCheckPod string `json:"healthCheckPod,omitempty"`

	// ownedKinds are the kinds of the objects that the Application owns. A kind is listed before the first owner reference
	// is written. One that the spec no longer names stays until the references to the Application are removed from all of
	// its objects.
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	OwnedKinds []metav1.GroupVersionKind `json:"ownedKinds,omitempty"`
}

// ComponentCounts are numbers of components.
type ComponentCounts struct {
	// total is the number of components that the Application names or discovers.
	Total int32 `json:"total"`

	// installed is the number of installed components.
	Installed int32 `json:"installed"`

	// selected is the number of objects that belong to the Application, including those that it does not name.
	Selected int32 `json:"selected"`

	// healthy is the number of Healthy components.
	Healthy int32 `json:"healthy"`

	// suspended is the number of Suspended components.
	Suspended int32 `json:"suspended"`

	// progressing is the number of Progressing components.
	Progressing int32 `json:"progressing"`

	// unknown is the number of Unknown components.
	Unknown int32 `json:"unknown"`

	// missing is the number of Missing components.
	Missing int32 `json:"missing"`

	// degraded is the number of Degraded components.
	Degraded int32 `json:"degraded"`

	// ignored is the number of components whose annotation excludes them from the health of the Application. They are also
	// counted by their state.
	Ignored int32 `json:"ignored"`

	// discovered is the number of discovered components.
	// +optional
	Discovered int32 `json:"discovered,omitempty"`
}

// ComponentStatus is the status of a component.
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

	// installed is True, False, or Unknown if Masthead cannot see it.
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

	// message gives details, for users.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// since is when installed or health last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DiscoveredStatus is the status of a discovered object, or why objects cannot be seen.
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

	// installed is True, False for a missing object that an inventory or the spec names, or Unknown if Masthead cannot see
	// it.
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

	// message gives details, for users.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// since is when installed or health last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// MaxHistory is the maximum number of health changes in a status.
const MaxHistory = 10

// HealthChange is a change of the health of an Application.
type HealthChange struct {
	// time of the change.
	// +required
	Time metav1.Time `json:"time"`

	// health after the change.
	// +required
	Health Health `json:"health"`

	// message of the Application at that time.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// DependencyStatus is the status of a dependency.
type DependencyStatus struct {
	// name of the Application.
	// +required
	Name string `json:"name"`

	// installed is True if an Application of that name exists in the namespace, False if not, Unknown if Masthead cannot
	// see it.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Installed corev1.ConditionStatus `json:"installed"`

	// ready is the readiness that the Application reports.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +optional
	Ready corev1.ConditionStatus `json:"ready,omitempty"`

	// health is the health that the Application reports.
	// +optional
	Health Health `json:"health,omitempty"`

	// since is when installed last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}
