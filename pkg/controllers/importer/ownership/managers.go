// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// externalName is the name of a managed resource in its cloud.
func externalName(m metav1.Object) string {
	return cmp.Or(m.GetAnnotations()[reflection.ExternalNameAnnotation], m.GetName())
}

// HasName reports whether a managed resource has the name of a cluster. Azure's names have no case.
func HasName(m metav1.Object, of reflection.Import) bool {
	name := externalName(m)
	return name == of.ClusterName || of.Cloud == reflection.AKS && strings.EqualFold(name, of.ClusterName)
}

// Manages reports whether a foreign managed resource, with the cluster's name, represents the cluster and may do
// more than observe. A name means nothing without the account, which comes from the provider configuration: a tenant
// with another configuration could block everybody's import by name. By the observed ID it counts also with another
// configuration, but not in another namespace: with their own configuration, which can lead to their own cloud, a
// tenant can present anybody's ID. See sameCluster.
func Manages(other *unstructured.Unstructured, imp reflection.Import, namespaced bool, id string) bool {
	if slices.Equal(ManagementPolicies(other), []string{"Observe"}) || !HasName(other, imp) {
		return false
	}
	if newConfigKey(other) == configOfImport(imp, namespaced) {
		return samePlace(other, imp)
	}
	near := other.GetNamespace() == "" || other.GetNamespace() == imp.Namespace
	return near && id != "" && strings.EqualFold(observedID(other), id)
}

// observedID is the cluster ID that a managed resource reports.
func observedID(m *unstructured.Unstructured) string {
	field := "id"
	if reflection.EKSCluster.Is(m.GroupVersionKind().GroupKind()) {
		field = "arn" // The id is the name.
	}
	id, _, _ := unstructured.NestedString(m.Object, "status", "atProvider", field)
	return id
}

// configKey identifies a provider configuration.
type configKey struct {
	// legacy ones are in another API group.
	legacy                bool
	kind, namespace, name string
}

// newConfigKey is the provider configuration that a managed resource uses, with the defaults of Crossplane's providers.
func newConfigKey(m *unstructured.Unstructured) configKey {
	ref, _, _ := unstructured.NestedStringMap(m.Object, "spec", "providerConfigRef")
	c := configKey{kind: "ProviderConfig", name: cmp.Or(ref["name"], "default")}
	if c.legacy = !strings.Contains(m.GroupVersionKind().Group, ".m."); c.legacy {
		return c
	}
	if c.kind = cmp.Or(ref["kind"], "ClusterProviderConfig"); c.kind == "ProviderConfig" {
		c.namespace = m.GetNamespace()
	}
	return c
}

// configOfImport is the provider configuration of an import whose managed resources are namespaced, or not.
func configOfImport(w reflection.Import, namespaced bool) configKey {
	c := configKey{legacy: !namespaced, kind: w.ProviderConfig.Kind, name: w.ProviderConfig.Name}
	if namespaced && c.kind == "ProviderConfig" {
		c.namespace = w.Namespace
	}
	return c
}

// samePlace reports whether a managed resource is for the import's place, or names none.
func samePlace(m *unstructured.Unstructured, w reflection.Import) bool {
	for field, want := range map[string]string{"region": w.Region, "resourceGroupName": w.ResourceGroupName, "location": w.Location} {
		got, _, err := unstructured.NestedString(m.Object, "spec", "forProvider", field)
		if want != "" && err == nil && got != "" && !strings.EqualFold(got, want) {
			return false
		}
	}
	return true
}

// ManagementPolicies are the managementPolicies of a managed resource. None means all.
func ManagementPolicies(m *unstructured.Unstructured) []string {
	policies, _, err := unstructured.NestedStringSlice(m.Object, "spec", "managementPolicies")
	if err != nil {
		return nil
	}
	return policies
}
