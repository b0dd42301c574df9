// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthRule defines the health of the objects of some kinds, in every workload cluster, where Masthead's own checks
// do not know it or are wrong. Its expressions are CEL, as in a ValidatingAdmissionPolicy, with the object in the
// variable object. They are evaluated in this order: degraded, suspended, progressing, healthy. The first that is true
// decides. If none is, the field otherwise decides; without it, the object is Progressing if the rule has the
// expression healthy, and else the next rule for the kind is evaluated.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=hrule,categories=masthead
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.group`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Groups",type=string,JSONPath=`.spec.groups`,priority=1
// +kubebuilder:printcolumn:name="Kinds",type=string,JSONPath=`.spec.kinds`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HealthRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the kinds, and defines the health of their objects.
	// +required
	Spec HealthRuleSpec `json:"spec"`

	// status reports whether Masthead applies the rule.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status HealthRuleStatus `json:"status,omitempty"`
}

// StaleStatus says how a status about an older generation of its object is treated.
//
// +kubebuilder:validation:Enum=Judged;Progressing
type StaleStatus string

const (
	// StaleStatusJudged means: the expressions are evaluated, regardless of the generation that the status is about.
	StaleStatusJudged StaleStatus = "Judged"

	// StaleStatusProgressing means: an object whose status.observedGeneration is behind its generation is Progressing, and
	// no expression is evaluated.
	StaleStatusProgressing StaleStatus = "Progressing"
)

// Otherwise is the state of an object for which no expression of a rule is true.
//
// +kubebuilder:validation:Enum=Progressing;Unknown;Next
type Otherwise string

const (
	// OtherwiseProgressing means: the object is progressing.
	OtherwiseProgressing Otherwise = "Progressing"

	// OtherwiseUnknown means: its status is empty, or says something that the rule does not know.
	OtherwiseUnknown Otherwise = "Unknown"

	// OtherwiseNext means: the rule does not decide. The next rule for the kind, or else the health without rules,
	// applies.
	OtherwiseNext Otherwise = "Next"
)

// HealthRuleSpec names some kinds, and defines the health of their objects.
//
// +kubebuilder:validation:XValidation:rule="has(self.kind) != has(self.kinds)",message="either kind or kinds is required"
// +kubebuilder:validation:XValidation:rule="!(has(self.group) && has(self.groups))",message="group and groups cannot both be given"
// +kubebuilder:validation:XValidation:rule="!has(self.kinds) || !('*' in self.kinds) || size(self.kinds) == 1",message="the wildcard * includes every other kind"
// +kubebuilder:validation:XValidation:rule="has(self.degraded) || has(self.suspended) || has(self.progressing) || has(self.healthy)",message="at least one of degraded, suspended, progressing and healthy is required"
type HealthRuleSpec struct {
	// group of the kind. Absent or empty means the core group, which has Services and Pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="an API group is a DNS subdomain, for example apps or db.example.org, and is empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`

	// groups are the groups of the kinds, instead of group. "*.example.org" is every group below that domain, and "*" is
	// every group. Wildcards do not include the kinds that Masthead has built-in checks for, which are those of
	// Kubernetes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(g, g == '' || g == '*' || g.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="a group is a DNS subdomain, for example apps or db.example.org, *.example.org for the groups below it, or * for all"
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`

	// kind, for example Database.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="a kind is a word that begins with a capital letter, for example Database"
	// +optional
	Kind string `json:"kind,omitempty"`

	// kinds, instead of kind. "*" is every kind of the groups.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(k, k == '*' || k.matches('^[A-Za-z][A-Za-z0-9]*$'))",message="a kind is a word, for example Database, or * for all"
	// +listType=set
	// +optional
	Kinds []string `json:"kinds,omitempty"`

	// versions of the kinds, for example v1beta1. Absent means all. An object has the version that its Application names.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Versions []string `json:"versions,omitempty"`

	// staleStatus says how a status about an older generation of its object is treated. Absent means Judged: the
	// expressions are evaluated. Progressing is for kinds whose controllers write status.observedGeneration.
	// +optional
	StaleStatus StaleStatus `json:"staleStatus,omitempty"`

	// degraded is true for an object that has failed and does not recover by itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Degraded string `json:"degraded,omitempty"`

	// suspended is true for an object that its owner has paused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Suspended string `json:"suspended,omitempty"`

	// progressing is true for an object that is progressing towards its spec.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Progressing string `json:"progressing,omitempty"`

	// healthy is true for an object that matches its spec. With it, an object for which no expression is true is
	// Progressing. The expression "true" is for kinds without a useful status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Healthy string `json:"healthy,omitempty"`

	// otherwise is the state of an object for which no expression is true. Next means that the next rule for the kind, or
	// else the health without rules, applies. Absent means Progressing if the rule has the expression healthy, and else
	// Next.
	// +optional
	Otherwise Otherwise `json:"otherwise,omitempty"`

	// message is an expression for a message about an object that is not healthy according to this rule. Absent means the
	// message of the object's deepest abnormal condition. Up to 256 characters are shown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}

// HealthRuleStatus reports whether Masthead applies a rule.
type HealthRuleStatus struct {
	// observedGeneration is the generation of the rule that this status was computed for; -1 before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule: Ready (Masthead applies it) and, only while a user must correct it, Stalled.
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
