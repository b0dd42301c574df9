// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ApplicationReport sums up the Applications of one enrolled cluster. Masthead writes it, beside the enrolled object and under the
// name of the cluster's ClusterProfile; there is nothing in it for people to write.
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

	// status is what is known of the cluster's Applications.
	// +optional
	Status ApplicationReportStatus `json:"status,omitempty"`
}

// MaxWorstApplications is how many Applications a report names at most.
const MaxWorstApplications = 10

// ApplicationReportStatus is what is known of a cluster's Applications.
type ApplicationReportStatus struct {
	// applications are numbers of Applications. While the report is not current, all that are known of are counted as unknown and
	// none as healthy; lastKnown says what they were.
	// +optional
	Applications ApplicationCounts `json:"applications"`

	// components are numbers of the components of all Applications.
	// +optional
	Components ComponentTotals `json:"components"`

	// message names the worst Application and says what is wrong with it or, while the report is not current, why it is not. It is
	// empty if all is well.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// worst are the Applications that are not healthy or not ready, the worst first and then by namespace and name, no more than 10.
	// It is empty while the report is not current.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Worst []WorstApplication `json:"worst,omitempty"`

	// truncated says that there are more Applications that are not well than are named. The counts are of all.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// lastKnown is what was true when the report was current. It is there while the report is not.
	// +optional
	LastKnown *LastKnownApplications `json:"lastKnown,omitempty"`

	// lastSeen is when the cluster was last known to be reachable. It is there while the cluster is not.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// conditions of the report. The type Current says whether it shows the cluster as it is now.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ApplicationCounts are numbers of Applications.
type ApplicationCounts struct {
	// total is how many Applications there are.
	// +optional
	Total int32 `json:"total"`

	// healthy is how many are Healthy.
	// +optional
	Healthy int32 `json:"healthy"`

	// suspended is how many are Suspended.
	// +optional
	Suspended int32 `json:"suspended"`

	// progressing is how many are Progressing.
	// +optional
	Progressing int32 `json:"progressing"`

	// unknown is how many are Unknown.
	// +optional
	Unknown int32 `json:"unknown"`

	// missing is how many are Missing: a component of theirs is not there.
	// +optional
	Missing int32 `json:"missing"`

	// degraded is how many are Degraded.
	// +optional
	Degraded int32 `json:"degraded"`

	// ready is how many health checks say that their Application is ready.
	// +optional
	Ready int32 `json:"ready"`

	// notReady is how many health checks say that their Application is not ready. Those without a health check are neither.
	// +optional
	NotReady int32 `json:"notReady"`

	// installed is how many have all of their components installed, and at least one.
	// +optional
	Installed int32 `json:"installed"`
}

// ComponentTotals are numbers of components.
type ComponentTotals struct {
	// wanted is how many components the Applications name.
	// +optional
	Wanted int32 `json:"wanted"`

	// installed is how many of them are installed.
	// +optional
	Installed int32 `json:"installed"`
}

// WorstApplication is an Application that is not well.
type WorstApplication struct {
	// namespace of the Application in its cluster.
	// +required
	Namespace string `json:"namespace"`

	// name of the Application.
	// +required
	Name string `json:"name"`

	// type of the Application, as its author says.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Type string `json:"type,omitempty"`

	// version of the Application, as its author says.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version string `json:"version,omitempty"`

	// health of the Application: Healthy (and not ready), Suspended, Progressing, Unknown, Missing or Degraded.
	// +required
	Health string `json:"health"`

	// ready is what its health check says: True, False or Unknown.
	// +optional
	Ready metav1.ConditionStatus `json:"ready,omitempty"`

	// installed is how many of its components are installed, in the form "4/5".
	// +optional
	Installed string `json:"installed,omitempty"`

	// message is about what is worst in it.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// LastKnownApplications is what was true of a cluster's Applications.
type LastKnownApplications struct {
	// applications are numbers of Applications.
	// +optional
	Applications ApplicationCounts `json:"applications"`

	// components are numbers of the components of all Applications.
	// +optional
	Components ComponentTotals `json:"components"`
}

// ConditionCurrent of an ApplicationReport says whether it shows the cluster as it is now.
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

	// ReasonDisabled: the EnrollmentClass of the cluster does not want its Applications looked at.
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
