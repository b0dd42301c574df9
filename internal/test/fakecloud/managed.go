// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	_ resource.LegacyManaged = &legacy{} //nolint:staticcheck // Deprecated for new kinds; the cluster-scoped ones that are played here are old.
	_ resource.ModernManaged = &modern{}
)

// managedResource is a managed resource of any kind, for crossplane-runtime's reconciler.
type managedResource struct{ unstructured.Unstructured }

func (m *managedResource) object() *unstructured.Unstructured { return &m.Unstructured }

func (m *managedResource) into(path string, value any) bool {
	return fieldpath.Pave(m.Object).GetValueInto(path, value) == nil
}

// set sets a field. The paths are constants and the values plain, so that it cannot fail.
func (m *managedResource) set(path string, value any) {
	if m.Object == nil {
		m.Object = make(map[string]any)
	}
	_ = fieldpath.Pave(m.Object).SetValue(path, value)
}

// GetManagementPolicies is part of resource.Managed.
func (m *managedResource) GetManagementPolicies() xpv2.ManagementPolicies {
	var policies xpv2.ManagementPolicies
	m.into("spec.managementPolicies", &policies)
	return policies
}

// SetManagementPolicies is part of resource.Managed.
func (m *managedResource) SetManagementPolicies(policies xpv2.ManagementPolicies) {
	m.set("spec.managementPolicies", policies)
}

// GetCondition is part of resource.Managed.
func (m *managedResource) GetCondition(conditionType xpv2.ConditionType) xpv2.Condition {
	var status xpv2.ConditionedStatus
	m.into("status", &status)
	return status.GetCondition(conditionType)
}

// SetConditions is part of resource.Managed.
func (m *managedResource) SetConditions(conditions ...xpv2.Condition) {
	var status xpv2.ConditionedStatus
	m.into("status", &status)
	status.SetConditions(conditions...)
	m.set("status.conditions", status.Conditions)
}

// legacy is a cluster-scoped managed resource.
type legacy struct{ managedResource }

// DeepCopyObject is part of runtime.Object.
func (l *legacy) DeepCopyObject() runtime.Object {
	return &legacy{managedResource{*l.DeepCopy()}}
}

// GetDeletionPolicy is part of resource.LegacyManaged.
func (l *legacy) GetDeletionPolicy() xpv2.DeletionPolicy {
	var policy xpv2.DeletionPolicy
	l.into("spec.deletionPolicy", &policy)
	return policy
}

// SetDeletionPolicy is part of resource.LegacyManaged.
func (l *legacy) SetDeletionPolicy(policy xpv2.DeletionPolicy) { l.set("spec.deletionPolicy", policy) }

// GetWriteConnectionSecretToReference is part of resource.LegacyManaged.
func (l *legacy) GetWriteConnectionSecretToReference() *xpv2.SecretReference {
	reference := &xpv2.SecretReference{}
	if !l.into("spec.writeConnectionSecretToRef", reference) {
		return nil
	}
	return reference
}

// SetWriteConnectionSecretToReference is part of resource.LegacyManaged.
func (l *legacy) SetWriteConnectionSecretToReference(reference *xpv2.SecretReference) {
	l.set("spec.writeConnectionSecretToRef", reference)
}

// GetProviderConfigReference is part of resource.LegacyManaged.
func (l *legacy) GetProviderConfigReference() *xpv2.Reference {
	reference := &xpv2.Reference{}
	if !l.into("spec.providerConfigRef", reference) {
		return nil
	}
	return reference
}

// SetProviderConfigReference is part of resource.LegacyManaged.
func (l *legacy) SetProviderConfigReference(reference *xpv2.Reference) {
	l.set("spec.providerConfigRef", reference)
}

// modern is a namespaced managed resource.
type modern struct{ managedResource }

// DeepCopyObject is part of runtime.Object.
func (m *modern) DeepCopyObject() runtime.Object {
	return &modern{managedResource{*m.DeepCopy()}}
}

// GetWriteConnectionSecretToReference is part of resource.ModernManaged.
func (m *modern) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	reference := &xpv2.LocalSecretReference{}
	if !m.into("spec.writeConnectionSecretToRef", reference) {
		return nil
	}
	return reference
}

// SetWriteConnectionSecretToReference is part of resource.ModernManaged.
func (m *modern) SetWriteConnectionSecretToReference(reference *xpv2.LocalSecretReference) {
	m.set("spec.writeConnectionSecretToRef", reference)
}

// GetProviderConfigReference is part of resource.ModernManaged.
func (m *modern) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	reference := &xpv2.ProviderConfigReference{}
	if !m.into("spec.providerConfigRef", reference) {
		return nil
	}
	return reference
}

// SetProviderConfigReference is part of resource.ModernManaged.
func (m *modern) SetProviderConfigReference(reference *xpv2.ProviderConfigReference) {
	m.set("spec.providerConfigRef", reference)
}
