// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ApplicationsMode says whether Applications are managed.
//
// +kubebuilder:validation:Enum=Enabled;ObserveOnly;Disabled
type ApplicationsMode string

const (
	// ApplicationsModeEnabled installs the definition of Applications in the cluster, and reconciles Applications there.
	ApplicationsModeEnabled ApplicationsMode = "Enabled"

	// ApplicationsModeObserveOnly does the same but does not write to components or create Pods, and needs no rights for
	// that.
	ApplicationsModeObserveOnly ApplicationsMode = "ObserveOnly"

	// ApplicationsModeDisabled reconciles nothing. What exists is unchanged: the definition, Applications and the owner
	// references of their components.
	ApplicationsModeDisabled ApplicationsMode = "Disabled"
)

// ApplicationsSpec configures Applications in the clusters of a class.
type ApplicationsSpec struct {
	// mode is Enabled (the kind Application is installed in the cluster, and Applications own their components, report
	// what is installed and its health, and are summed up in the hub), ObserveOnly (the same, but components are not
	// written to, and no health check Pods are created) or Disabled (nothing is done; an installed kind stays, and
	// Applications report that they are no longer observed).
	// +kubebuilder:default=Enabled
	// +optional
	Mode ApplicationsMode `json:"mode,omitempty"`

	// visibility is what Applications see beyond their own namespace, for its health alone. Absent means nothing. Users
	// who can write an Application in one of the namespaces can then read names, kinds and health of what is listed for
	// it.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Visibility []ApplicationVisibility `json:"visibility,omitempty"`

	// discoveredOwnership is Forbidden (Applications own nothing that does not name them) or Allowed (an Application with
	// spec.discover.ownership: Owned owns what it discovers in its namespace). Users who can write Applications can then
	// have any object of their namespace deleted that has a label or an annotation by which it is discovered, or that an
	// Application names.
	// +kubebuilder:default=Forbidden
	// +optional
	DiscoveredOwnership DiscoveredOwnership `json:"discoveredOwnership,omitempty"`
}

// DiscoveredOwnership says whether Applications may own what they discover.
//
// +kubebuilder:validation:Enum=Forbidden;Allowed
type DiscoveredOwnership string

const (
	// DiscoveredOwnershipForbidden lets Applications own nothing that does not name them.
	DiscoveredOwnershipForbidden DiscoveredOwnership = "Forbidden"

	// DiscoveredOwnershipAllowed lets Applications own what they discover.
	DiscoveredOwnershipAllowed DiscoveredOwnership = "Allowed"
)

// ApplicationVisibility lets Applications of some namespaces of a workload cluster see objects elsewhere in it.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) || has(self.clusterScoped)",message="namespaces or clusterScoped is required"
type ApplicationVisibility struct {
	// from are the namespaces of the Applications.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +listType=set
	// +required
	From []string `json:"from"`

	// namespaces are the namespaces that they see.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// clusterScoped are the cluster-scoped resources that they see.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ClusterScoped []ReferencedResource `json:"clusterScoped,omitempty"`
}
