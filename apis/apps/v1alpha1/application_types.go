// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Application groups objects of its namespace, and reports whether they are installed and healthy. It owns the
// objects that it selects: they are deleted with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="apps.masthead.dev/definition-revision=3"
// +kubebuilder:resource:scope=Namespaced,shortName=app,categories={all,masthead}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.componentsInstalled`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Check",type=string,JSONPath=`.status.ready`,priority=1
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependencies) || !(self.metadata.name in self.spec.dependencies)",message="an Application cannot depend on itself"
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired composition of the Application.
	// +required
	Spec ApplicationSpec `json:"spec"`

	// status is the observed state of the Application, with its health.
	// +default={"observedGeneration": -1}
	// +optional
	Status ApplicationStatus `json:"status,omitempty"`
}

// ApplicationSpec defines an Application. All objects that it refers to are in its own namespace, except those that
// discover finds elsewhere.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="the selector cannot be changed: what it selected would be orphaned"
type ApplicationSpec struct {
	// type is the type of the application, for example WordPress, MySQL or Cassandra.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Type string `json:"type,omitempty"`

	// components are the parts of the application: the name and kind of an object. A component is installed when an object
	// of that kind and name exists in the namespace, has labels that the selector matches, and has the annotation
	// kubernetes.io/application with the name of this Application.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && name.matches('^[a-z0-9]([-a-z0-9:]*[a-z0-9])?([.][a-z0-9]([-a-z0-9:]*[a-z0-9])?)*$'))",message="the name of a component is that of an object: lower case letters, digits, \"-\" and \".\", at most 253 characters"
	// +optional
	Components map[string]ComponentKind `json:"components,omitempty"`

	// dependencies are the names of other Applications in the namespace that this one needs. They are shown in the status
	// and neither owned nor deleted.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of an Application is a DNS subdomain: lower case letters, digits, \"-\" and \".\""
	// +listType=set
	// +optional
	Dependencies []string `json:"dependencies,omitempty"`

	// selector matches the labels of the application's objects. Every object of the components' kinds that it matches and
	// that has the annotation belongs to the application. It is immutable.
	// +required
	Selector LabelSelector `json:"selector"`

	// discover adds components that are neither named here nor annotated: by the marks that Helm, Flux and Argo CD leave
	// on what they apply, by well-known labels, or by name. This field is Masthead's, not the KEP's.
	// +optional
	Discover *Discovery `json:"discover,omitempty"`

	// healthCheck is an optional Pod whose readiness represents the application's.
	// +optional
	HealthCheck *ApplicationHealthCheck `json:"healthCheck,omitempty"`

	// version of the application.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Version string `json:"version,omitempty"`

	// url points to more information about the application.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	AboutURL string `json:"url,omitempty"`

	// description of the application, in a few words.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`

	// maintainers of the application.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Maintainers []string `json:"maintainers,omitempty"`

	// keywords of the application, for example MySQL, RDBMS or database.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Keywords []string `json:"keywords,omitempty"`

	// license is the URL of the application's licence.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	LicenseURL string `json:"license,omitempty"`

	// dashboard is the URL of the application's dashboard.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	DashboardURL string `json:"dashboard,omitempty"`
}

// ComponentKind is the kind of a component.
type ComponentKind struct {
	// group of the kind. Absent or empty means the core group, which has Services and Pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="an API group is a DNS subdomain, for example apps or batch, and is empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`

	// version of the kind, for example v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a version is a DNS label, for example v1 or v1beta1"
	// +required
	Version string `json:"version"`

	// kind, for example StatefulSet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="a kind is a word that begins with a capital letter, for example StatefulSet"
	// +required
	Kind string `json:"kind"`

	// name of the object, if it differs from that of the component: two objects of different kinds can share a name, two
	// components cannot. This field is Masthead's, not the KEP's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9:]*[a-z0-9])?([.][a-z0-9]([-a-z0-9:]*[a-z0-9])?)*$')",message="the name of an object consists of lower case letters, digits, \"-\" and \".\""
	// +optional
	Name string `json:"name,omitempty"`
}

// LabelSelector is a standard Kubernetes label selector with limits, so that it can be validated on write. Without
// matchLabels and matchExpressions it matches everything.
type LabelSelector struct {
	// matchLabels are labels that an object must have.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && key.indexOf('/') <= 253 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="the keys of matchLabels must be valid names of labels"
	// +optional
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements that the labels of an object must meet. All must be met.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelValue is the value of a label; it can be empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="it must be a valid value of a label"
type LabelValue string

// LabelSelectorRequirement is a requirement for labels.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",message="the operators In and NotIn need values, Exists and DoesNotExist can have none"
type LabelSelectorRequirement struct {
	// key of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253 && self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be a valid name of a label"
	// +required
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	// +required
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values that the label may have (In), or may not have (NotIn).
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Values []LabelValue `json:"values,omitempty"`
}

// ApplicationHealthCheck is a Pod that checks an application.
type ApplicationHealthCheck struct {
	// template of the Pod. Its readiness probe determines whether the application is ready. The Pod is replaced when the
	// template changes. The fields are those of every Pod template: `kubectl explain pod`.
	// +kubebuilder:validation:XValidation:rule="has(self.spec) && self.spec.containers.exists(c, has(c.readinessProbe))",message="a container of the health check must have a readinessProbe"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || self.spec.containers.all(c, !has(c.readinessProbe) || [has(c.readinessProbe.exec), has(c.readinessProbe.httpGet), has(c.readinessProbe.tcpSocket), has(c.readinessProbe.grpc)].exists_one(is, is))",message="a readinessProbe says what is checked: one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || self.spec.containers.all(c, has(c.image) && c.image != '')",message="a container of the health check must have an image"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy in ['Always', 'OnFailure', 'Never']",message="the restartPolicy of a Pod is Always, OnFailure or Never"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.ephemeralContainers)",message="a template has no ephemeralContainers"
	// +required
	Template corev1.PodTemplateSpec `json:"template"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Applications.
	Items []Application `json:"items"`
}
