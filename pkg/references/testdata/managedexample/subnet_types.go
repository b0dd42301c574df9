// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managedexample

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// GroupVersion of the example.
var GroupVersion = schema.GroupVersion{Group: "network.example.org", Version: "v1alpha1"} //nolint:gochecknoglobals // As in every API package.

// SubnetKind is the kind of the example.
var SubnetKind = GroupVersion.WithKind("Subnet") //nolint:gochecknoglobals // As in every API package.

// AddToScheme registers the kinds of the example.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Subnet{}, &SubnetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// A Subnet is a managed resource that needs values of others.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed}
type Subnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SubnetSpec   `json:"spec"`
	Status SubnetStatus `json:"status,omitempty"`
}

// SubnetSpec is what a Subnet shall be.
type SubnetSpec struct {
	xpv2.ManagedResourceSpec  `json:",inline"`
	commonv1alpha1.References `json:",inline"`

	// forProvider are the parameters for the provider.
	ForProvider SubnetParameters `json:"forProvider"`
}

// SubnetParameters are the parameters for the provider.
type SubnetParameters struct {
	// region of the subnet.
	// +optional
	Region string `json:"region,omitempty"`

	// vpcID is the network that the subnet is in.
	// +optional
	VPCID string `json:"vpcID,omitempty"`

	// mask is how long the prefix is.
	// +optional
	Mask *int64 `json:"mask,omitempty"`

	// token is a secret.
	// +kubebuilder:validation:Format=password
	// +kubebuilder:validation:Pattern=`^[a-z0-9]*$`
	// +optional
	Token string `json:"token,omitempty"`

	// routes are distinguished by their names.
	// +listType=map
	// +listMapKey=name
	// +optional
	Routes []Route `json:"routes,omitempty"`
}

// A Route is an element of a list that is merged by keys.
type Route struct {
	// name of the route.
	Name string `json:"name"`

	// gateway of the route.
	// +optional
	Gateway string `json:"gateway,omitempty"`
}

// SubnetStatus is what a Subnet is.
type SubnetStatus struct {
	xpv2.ConditionedStatus `json:",inline"`
}

// SubnetList is a list of Subnets.
//
// +kubebuilder:object:root=true
type SubnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Subnet `json:"items"`
}

// GetCondition implements resource.Managed.
func (s *Subnet) GetCondition(ct xpv2.ConditionType) xpv2.Condition {
	return s.Status.GetCondition(ct)
}

// SetConditions implements resource.Managed.
func (s *Subnet) SetConditions(c ...xpv2.Condition) { s.Status.SetConditions(c...) }

// GetManagementPolicies implements resource.Managed.
func (s *Subnet) GetManagementPolicies() xpv2.ManagementPolicies {
	return s.Spec.ManagementPolicies
}

// SetManagementPolicies implements resource.Managed.
func (s *Subnet) SetManagementPolicies(p xpv2.ManagementPolicies) { s.Spec.ManagementPolicies = p }

// GetProviderConfigReference implements resource.ModernManaged.
func (s *Subnet) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return s.Spec.ProviderConfigReference
}

// SetProviderConfigReference implements resource.ModernManaged.
func (s *Subnet) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	s.Spec.ProviderConfigReference = r
}

// GetWriteConnectionSecretToReference implements resource.ModernManaged.
func (s *Subnet) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return s.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference implements resource.ModernManaged.
func (s *Subnet) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	s.Spec.WriteConnectionSecretToReference = r
}
