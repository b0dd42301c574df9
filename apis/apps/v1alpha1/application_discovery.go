// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MaxDiscovered is the maximum number of objects that an Application discovers.
const MaxDiscovered = 512

// Discovery selects objects of an Application that are neither named by it nor annotated with its name. They count in
// the health of the Application. They are not owned by it, unless ownership says so.
//
// +kubebuilder:validation:XValidation:rule="has(self.kinds) || self.sources.all(s, has(s.object) || has(s.fluxKustomization) || has(s.fluxHelmRelease))",message="kinds are required: only object, fluxKustomization and fluxHelmRelease tell of which kinds the objects are"
type Discovery struct {
	// sources are the ways to find objects. An object found by several is counted once.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Sources []DiscoverySource `json:"sources"`

	// kinds are the kinds of objects to look for. An inventory of Flux brings its own.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Kinds []DiscoveredKind `json:"kinds,omitempty"`

	// namespaces to search, besides that of the Application: for their health alone, and only those that the
	// EnrollmentClass of the cluster lets Applications of this namespace see.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// ownership is None (discovered objects are observed and not changed) or Owned (they get an owner reference and are
	// deleted with the Application, if they are in its namespace). Owned must be allowed by the EnrollmentClass of the
	// cluster.
	// +kubebuilder:default=None
	// +optional
	Ownership DiscoveryOwnership `json:"ownership,omitempty"`
}

// DiscoveryOwnership says whether an Application owns what it discovers.
//
// +kubebuilder:validation:Enum=None;Owned
type DiscoveryOwnership string

const (
	// DiscoveryOwnershipNone observes objects and does not change them.
	DiscoveryOwnershipNone DiscoveryOwnership = "None"

	// DiscoveryOwnershipOwned makes the Application own objects of its namespace, which are deleted with it.
	DiscoveryOwnershipOwned DiscoveryOwnership = "Owned"
)

// DiscoverySource is one way to find objects: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.partOf), has(self.instance), has(self.helmRelease), has(self.fluxKustomization), has(self.fluxHelmRelease), has(self.argoApplication), has(self.object)].filter(x, x).size() == 1",message="exactly one of partOf, instance, helmRelease, fluxKustomization, fluxHelmRelease, argoApplication and object is required"
type DiscoverySource struct {
	// partOf is the value of the label app.kubernetes.io/part-of.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="it must be a valid value of a label"
	// +optional
	PartOf string `json:"partOf,omitempty"`

	// instance is the value of the label app.kubernetes.io/instance. Argo CD uses it, too, if it is set to track by label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="it must be a valid value of a label"
	// +optional
	Instance string `json:"instance,omitempty"`

	// helmRelease is a Helm release. Helm annotates what it installs with meta.helm.sh/release-name and release-namespace.
	// +optional
	HelmRelease *DiscoveredRelease `json:"helmRelease,omitempty"`

	// fluxKustomization is a Kustomization of Flux. Its inventory is used if it is in the cluster and may be seen;
	// otherwise the labels kustomize.toolkit.fluxcd.io/name and namespace are.
	// +optional
	FluxKustomization *DiscoveredRelease `json:"fluxKustomization,omitempty"`

	// fluxHelmRelease is a HelmRelease of Flux. Its inventory is used if it has one, is in the cluster and may be seen;
	// otherwise the labels helm.toolkit.fluxcd.io/name and namespace are.
	// +optional
	FluxHelmRelease *DiscoveredRelease `json:"fluxHelmRelease,omitempty"`

	// argoApplication is an Application of Argo CD, wherever it is. Objects that it applies have the annotation
	// argocd.argoproj.io/tracking-id or, if Argo CD tracks by that label, argocd.argoproj.io/instance.
	// +optional
	ArgoApplication *ArgoApplication `json:"argoApplication,omitempty"`

	// object is a single object.
	// +optional
	Object *DiscoveredObject `json:"object,omitempty"`
}

// DiscoveredRelease names the release that applied the objects.
type DiscoveredRelease struct {
	// name of the release, the Kustomization or the HelmRelease.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a name is a DNS subdomain: lower case letters, digits, \"-\" and \".\""
	// +required
	Name string `json:"name"`

	// namespace of the release. Absent means that of the Application.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ArgoApplication names an Application of Argo CD.
type ArgoApplication struct {
	// name of the Application.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a name is a DNS subdomain: lower case letters, digits, \"-\" and \".\""
	// +required
	Name string `json:"name"`

	// namespace of the Application, if it differs from that in which Argo CD runs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// DiscoveredObject names an object.
type DiscoveredObject struct {
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

	// namespace of the object. Absent means that of the Application, for a namespaced kind.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9:]*[a-z0-9])?([.][a-z0-9]([-a-z0-9:]*[a-z0-9])?)*$')",message="the name of an object consists of lower case letters, digits, \"-\" and \".\""
	// +required
	Name string `json:"name"`
}

// DiscoveredKind is a kind of objects to discover.
type DiscoveredKind struct {
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
}
