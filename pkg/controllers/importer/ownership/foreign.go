// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Manages reports whether a foreign managed resource, with the cluster's name, represents the cluster and may do
// more than observe. A name means nothing without the account, which comes from the provider configuration: a tenant
// with another configuration could block everybody's import by name. By the observed ID it counts also with another
// configuration, but not in another namespace: with their own configuration, which can lead to their own cloud, a
// tenant can present anybody's ID. See sameCluster.
func Manages(other *unstructured.Unstructured, imp reflection.Import, namespaced bool, id string) bool {
	if slices.Equal(ManagementPolicies(other), []string{"Observe"}) || !imp.Names(other) {
		return false
	}
	if newConfigKey(other) == configOfImport(imp, namespaced) {
		return imp.IsAt(other)
	}
	near := other.GetNamespace() == "" || other.GetNamespace() == imp.Namespace
	return near && id != "" && strings.EqualFold(imp.ObservedID(other), id)
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

// ManagementPolicies are the managementPolicies of a managed resource. None means all.
func ManagementPolicies(m *unstructured.Unstructured) []string {
	policies, _, _ := unstructured.NestedStringSlice(m.Object, "spec", "managementPolicies")
	return policies
}
