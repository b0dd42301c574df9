// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ApplicationReport sums up the Applications of one enrolled cluster. Masthead writes it, in the namespace of the
// enrolled object and with the name of the cluster's ClusterProfile; users have nothing to write in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=appreport,categories=masthead
// +kubebuilder:printcolumn:name="Applications",type=integer,JSONPath=`.status.applications.total`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.applications.healthy`
// +kubebuilder:printcolumn:name="Degraded",type=integer,JSONPath=`.status.applications.degraded`
// +kubebuilder:printcolumn:name="Missing",type=integer,JSONPath=`.status.applications.missing`,priority=1
// +kubebuilder:printcolumn:name="Progressing",type=integer,JSONPath=`.status.applications.progressing`,priority=1
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.applications.unknown`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.applications.ready`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.conditions[?(@.type=="Current")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Current")].reason`,priority=1
// +kubebuilder:printcolumn:name="Last-Seen",type=date,JSONPath=`.status.lastSeen`
// +kubebuilder:printcolumn:name="Worst",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApplicationReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the observed state of the cluster's Applications.
	// +optional
	Status ApplicationReportStatus `json:"status,omitempty"`
}

// MaxWorstApplications is the maximum number of Applications named in a report.
const MaxWorstApplications = 10

// ApplicationReportStatus is the observed state of a cluster's Applications.
type ApplicationReportStatus struct {
	// applications are numbers of Applications. While the report is not current, all known ones are counted as unknown and
	// none as healthy; lastKnown has the previous numbers.
	// +optional
	Applications ApplicationCounts `json:"applications"`

	// components are numbers of the components of all Applications.
	// +optional
	Components ComponentTotals `json:"components"`

	// message names the worst Application and its problem or, while the report is not current, why it is not. It is empty
	// if there is no problem.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// worst are the Applications that are not healthy or not ready, the worst first and then by namespace and name. It
	// is empty while the report is not current.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Worst []WorstApplication `json:"worst,omitempty"`

	// truncated says that more Applications are not healthy or not ready than worst lists. The counts include all.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// lastKnown is the last current state. It is set while the report is not current.
	// +optional
	LastKnown *LastKnownApplications `json:"lastKnown,omitempty"`

	// lastSeen is when the cluster was last known to be reachable. It is set while the cluster is not.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// conditions of the report. The type Current says whether it shows the cluster's current state.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ApplicationCounts are numbers of Applications.
type ApplicationCounts struct {
	// total is the number of Applications.
	// +optional
	Total int32 `json:"total"`

	// healthy is the number of Healthy ones.
	// +optional
	Healthy int32 `json:"healthy"`

	// suspended is the number of Suspended ones.
	// +optional
	Suspended int32 `json:"suspended"`

	// progressing is the number of Progressing ones.
	// +optional
	Progressing int32 `json:"progressing"`

	// unknown is the number of Unknown ones.
	// +optional
	Unknown int32 `json:"unknown"`

	// missing is the number of Missing ones: a component does not exist.
	// +optional
	Missing int32 `json:"missing"`

	// degraded is the number of Degraded ones.
	// +optional
	Degraded int32 `json:"degraded"`

	// ready is the number of Applications whose health check passes.
	// +optional
	Ready int32 `json:"ready"`

	// notReady is the number of Applications whose health check fails. Those without a health check are neither.
	// +optional
	NotReady int32 `json:"notReady"`

	// installed is the number of Applications with at least one component and all components installed.
	// +optional
	Installed int32 `json:"installed"`
}

// ComponentTotals are numbers of components.
type ComponentTotals struct {
	// wanted is the number of components that the Applications name.
	// +optional
	Wanted int32 `json:"wanted"`

	// installed is the number of installed ones.
	// +optional
	Installed int32 `json:"installed"`
}

// WorstApplication is an Application that is not healthy or not ready.
type WorstApplication struct {
	// namespace of the Application in its cluster.
	// +required
	Namespace string `json:"namespace"`

	// name of the Application.
	// +required
	Name string `json:"name"`

	// type of the Application, as set by its author.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Type string `json:"type,omitempty"`

	// version of the Application, as set by its author.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version string `json:"version,omitempty"`

	// health of the Application: Healthy (and not ready), Suspended, Progressing, Unknown, Missing or Degraded.
	// +required
	Health string `json:"health"`

	// ready is the result of its health check: True, False or Unknown.
	// +optional
	Ready metav1.ConditionStatus `json:"ready,omitempty"`

	// installed is the number of installed components, in the form "4/5".
	// +optional
	Installed string `json:"installed,omitempty"`

	// message describes its worst problem.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// LastKnownApplications is the last known state of a cluster's Applications.
type LastKnownApplications struct {
	// applications are numbers of Applications.
	// +optional
	Applications ApplicationCounts `json:"applications"`

	// components are numbers of the components of all Applications.
	// +optional
	Components ComponentTotals `json:"components"`
}

// ConditionCurrent of an ApplicationReport says whether it shows the cluster's current state.
const ConditionCurrent = "Current"

// Reasons of the condition Current of an ApplicationReport.
const (
	// ReasonWatching: Masthead watches the Applications of the cluster.
	ReasonWatching = "Watching"

	// ReasonUnreachable: there is no working connection to the cluster. Its ClusterProfile says why.
	ReasonUnreachable = "Unreachable"

	// ReasonSyncing: the Applications of the cluster are being read.
	ReasonSyncing = "Syncing"

	// ReasonNotServed: the cluster does not serve Masthead's kind Application, or does not let Masthead read it.
	ReasonNotServed = "NotServed"

	// ReasonDisabled: the EnrollmentClass of the cluster disables Applications.
	ReasonDisabled = "Disabled"
)

// ApplicationReportList is a list of ApplicationReports.
//
// +kubebuilder:object:root=true
type ApplicationReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ApplicationReports.
	Items []ApplicationReport `json:"items"`
}
