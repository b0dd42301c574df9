// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// canaryName is the name of every object that is sent in order to be refused. It is never created.
const canaryName = "masthead-canary"

// canary is an object that its CRD accepts and the policy of its family refuses.
type canary struct {
	kind   schema.GroupKind
	spec   map[string]any
	mutate func(*unstructured.Unstructured)
	// message is part of the policy's message about it.
	message string
}

// object returns the canary in the version of its kind that the hub serves.
func (c canary) object(version, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
	object.SetGroupVersionKind(c.kind.WithVersion(version))
	object.SetName(canaryName)
	object.SetNamespace(namespace)
	object.SetLabels(map[string]string{fleetv1alpha1.ImportUIDLabel: canaryName})
	if c.mutate != nil {
		c.mutate(object)
	}
	return object
}

// managedResourceCanaries would, besides observing, let their provider late-initialize their spec. No provider would
// write to the cloud for them.
func managedResourceCanaries() []canary {
	var canaries []canary
	for _, cloud := range reflection.Clouds() {
		cluster := reflection.Kinds(cloud)[0]
		for _, kind := range []schema.GroupKind{cluster.Namespaced(), cluster.Legacy()} {
			canaries = append(canaries, canary{
				kind: kind,
				spec: map[string]any{
					"forProvider":        map[string]any{reflection.PlaceField(cloud): canaryName},
					"managementPolicies": []any{"Observe", "LateInitialize"},
				},
				message: `must have the managementPolicies ["Observe"]`,
			})
		}
	}
	return canaries
}

// reflectionCanaries have a finalizer, which a provider adds before its first call to the cloud.
func reflectionCanaries() []canary {
	bearFinalizer := func(object *unstructured.Unstructured) {
		object.SetAnnotations(map[string]string{"cluster.x-k8s.io/managed-by": "crossplane", "cluster.x-k8s.io/paused": "true"})
		object.SetFinalizers([]string{"fleet.masthead.dev/canary"})
	}
	var canaries []canary
	for _, cloud := range reflection.Clouds() {
		canaries = append(canaries, canary{reflection.PlainKind(cloud), map[string]any{}, bearFinalizer, "must not have a finalizer"})
	}
	return canaries
}

// clusterAPICanaries contains a MachinePool that core would reconcile.
func clusterAPICanaries() []canary {
	return []canary{{
		kind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachinePool"},
		spec: map[string]any{
			"clusterName": canaryName,
			"template": map[string]any{"spec": map[string]any{
				"clusterName": canaryName,
				"bootstrap":   map[string]any{"dataSecretName": ""},
				"infrastructureRef": map[string]any{
					"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedMachinePool", "name": canaryName,
				},
			}},
		},
		message: "must have the annotation cluster.x-k8s.io/paused",
	}}
}

// identityCanaries are identities that every namespace may use.
func identityCanaries() []canary {
	return []canary{
		{
			kind: schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSClusterRoleIdentity"},
			spec: map[string]any{
				"allowedNamespaces": map[string]any{},
				"roleARN":           "arn:aws:iam::000000000000:role/" + canaryName,
				"sourceIdentityRef": map[string]any{"kind": "AWSClusterStaticIdentity", "name": canaryName},
			},
			message: "must not have allowedNamespaces",
		},
		{
			kind: schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AzureClusterIdentity"},
			spec: map[string]any{
				"allowedNamespaces": map[string]any{},
				"type":              "WorkloadIdentity", "tenantID": canaryName, "clientID": canaryName,
			},
			message: "must not have allowedNamespaces",
		},
	}
}
