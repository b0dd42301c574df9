// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthRule says how the objects of one kind fare, in every workload cluster, where Masthead itself does not know it or is wrong.
// Its expressions are CEL, as in a ValidatingAdmissionPolicy, with the object in the variable object. They are asked in this order:
// degraded, suspended, progressing, healthy. The first that is true decides. If none is, the object is Progressing if the rule
// has the expression healthy, and otherwise fares as it would without the rule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=hrule,categories=masthead
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.group`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HealthRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the kind, and how its objects fare.
	// +required
	Spec HealthRuleSpec `json:"spec"`

	// status is whether Masthead follows the rule.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status HealthRuleStatus `json:"status,omitempty"`
}

// HealthRuleSpec is a kind, and how its objects fare.
//
// +kubebuilder:validation:XValidation:rule="has(self.degraded) || has(self.suspended) || has(self.progressing) || has(self.healthy)",message="at least one of degraded, suspended, progressing and healthy is required"
type HealthRuleSpec struct {
	// group of the kind. Absent or empty means the core group, of Services and Pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="an API group is a DNS subdomain, for example apps or db.example.org, and is empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`

	// kind, for example Database. The rule is for every version of it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="a kind is a word that begins with a capital letter, for example Database"
	// +required
	Kind string `json:"kind"`

	// degraded is true for an object that has failed and does not mend by itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Degraded string `json:"degraded,omitempty"`

	// suspended is true for an object that its owner has paused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Suspended string `json:"suspended,omitempty"`

	// progressing is true for an object that is on its way to what its owner wants.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Progressing string `json:"progressing,omitempty"`

	// healthy is true for an object that is as its owner wants it. With it, an object for which no expression is true is
	// Progressing. The expression "true" is for kinds that say nothing of themselves.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Healthy string `json:"healthy,omitempty"`

	// message is an expression for a text about an object that is not healthy according to this rule. Up to 256 characters of
	// it are shown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}

// HealthRuleStatus is whether Masthead follows a rule.
type HealthRuleStatus struct {
	// observedGeneration is the generation of the rule that this status was computed for; -1 before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule: Ready (Masthead follows it) and, only while somebody has to correct it, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HealthRuleList is a list of HealthRules.
//
// +kubebuilder:object:root=true
type HealthRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the HealthRules.
	Items []HealthRule `json:"items"`
}
