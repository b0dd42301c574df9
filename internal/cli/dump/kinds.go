// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// what is a set of objects to collect.
type what struct {
	kind    schema.GroupKind
	options []client.ListOption
	want    func(*unstructured.Unstructured) bool
	keep    shape

	// optional is a kind that not every hub has.
	optional bool
}

// collected lists the objects of a hub besides claims, events and logs.
func collected() []what {
	kind := func(group, name string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: name} }
	rights := keeping("rules", "aggregationRule", "roleRef", "subjects")
	installed := []client.ListOption{fleet.ManagerLabels()}
	packages := keeping("spec.package", "status.conditions", "status.currentRevision")
	return append(imported(), []what{
		{kind: kind(fleetv1alpha1.GroupVersion.Group, "EnrollmentClass"), keep: whole},
		{kind: kind(fleetv1alpha1.GroupVersion.Group, "HealthRule"), keep: whole},
		{kind: kind(fleetv1alpha1.GroupVersion.Group, "ApplicationReport"), keep: whole},
		{kind: kind(fleetv1alpha1.GroupVersion.Group, "ClusterImport"), keep: whole},
		{kind: kind("multicluster.x-k8s.io", "ClusterProfile"), keep: keeping(
			"spec", "status.conditions", "status.properties", "status.version")},
		{kind: kind("cluster.x-k8s.io", "Cluster"), optional: true, keep: keeping(
			"spec.paused", "spec.controlPlaneEndpoint", "spec.controlPlaneRef", "spec.infrastructureRef", "spec.topology.class",
			"spec.topology.classRef", "spec.topology.version", "status")},
		// Only their metadata is read: see fleet.ClusterClient.
		{kind: kind("", "Secret"), options: []client.ListOption{client.HasLabels{fleetv1alpha1.EnrollLabel}}, keep: keeping()},
		{kind: kind("apiextensions.crossplane.io", "CompositeResourceDefinition"), optional: true, keep: definition},
		{kind: kind("apiextensions.crossplane.io", "Composition"), optional: true, keep: keeping("spec.compositeTypeRef", "spec.mode")},
		{kind: kind("pkg.crossplane.io", "Provider"), optional: true, keep: packages},
		{kind: kind("pkg.crossplane.io", "Function"), optional: true, keep: packages},
		{kind: kind("pkg.crossplane.io", "Configuration"), optional: true, keep: packages},
		{kind: kind("apps", "Deployment"), options: installed, keep: deployment},
		{kind: kind("", "Pod"), options: installed, keep: pod},
		{kind: kind("", "Service"), options: installed, keep: keeping("spec.ports", "spec.type", "spec.selector")},
		{kind: kind("", "ConfigMap"), options: installed, keep: configMap},
		{kind: kind("networking.k8s.io", "NetworkPolicy"), options: installed, keep: keeping("spec")},
		{kind: kind("coordination.k8s.io", "Lease"), keep: keeping("spec"), want: func(u *unstructured.Unstructured) bool {
			return u.GetName() == fleet.LeaseName
		}},
		{kind: kind("rbac.authorization.k8s.io", "ClusterRole"), options: installed, keep: rights},
		{kind: kind("rbac.authorization.k8s.io", "ClusterRoleBinding"), options: installed, keep: rights},
		{kind: kind("rbac.authorization.k8s.io", "Role"), options: installed, keep: rights},
		{kind: kind("rbac.authorization.k8s.io", "RoleBinding"), options: installed, keep: rights},
		{kind: kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"), options: installed, keep: keeping("spec", "status")},
		{kind: kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"), options: installed, keep: keeping("spec")},
	}...)
}

// imported lists what imports made: what Crossplane observed of each cluster, and what is reflected of it.
func imported() (all []what) {
	made := func(keep shape, kinds ...schema.GroupKind) {
		for _, kind := range kinds {
			all = append(all, what{
				kind: kind, options: []client.ListOption{client.HasLabels{fleetv1alpha1.ImportUIDLabel}}, keep: keep, optional: true,
			})
		}
	}
	for _, cloud := range reflection.Clouds() {
		for _, kind := range reflection.Kinds(cloud) {
			made(observed("spec", "status.atProvider", "status.conditions"), kind.Namespaced(), kind.Legacy())
		}
		made(observed("spec", "status"), reflection.ProviderKinds(cloud)...)
	}
	made(observed("spec", "status"), reflection.CoreKinds()[1:]...) // Clusters are collected anyway.
	return all
}

// observed keeps fields of what exists in a cloud, without the values of what its users write there.
func observed(paths ...string) shape {
	return func(u *unstructured.Unstructured) map[string]any {
		out := pick(u.Object, paths...)
		removeValues(out["spec"])
		removeValues(out["status"])
		return out
	}
}

// userWritten are the names of fields with texts of a cloud's users.
var userWritten = regexp.MustCompile(`(?i)(tags|tagsAll|labels|metadata)$`) //nolint:gochecknoglobals // A constant.

func removeValues(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			removeValues(each)
		}
	case map[string]any:
		for key, field := range v {
			texts, ok := field.(map[string]any)
			if ok && userWritten.MatchString(key) {
				for name := range texts {
					texts[name] = removed
				}
			}
			removeValues(field)
		}
	}
}

// claim keeps what explains the state of a claim, or of its object in the hub, without its parameters.
func claim() shape {
	return keeping("spec.resourceRef", "spec.compositionRef", "spec.compositionRevisionRef", "spec.compositeDeletePolicy",
		"spec.compositionUpdatePolicy", "spec.writeConnectionSecretToRef.name", "spec.crossplane", "status.conditions")
}

// carried reports whether an object of the hub came from a workload cluster.
func carried(u *unstructured.Unstructured) bool {
	_, named := ownership.GetSource(u)
	return named
}

// definitions are the CustomResourceDefinitions that the manager, or some of its functions, need.
func definitions() []string {
	out := []string{"clusterprofiles.multicluster.x-k8s.io", "clusters.cluster.x-k8s.io", "compositeresourcedefinitions.apiextensions.crossplane.io"}
	for _, plural := range []string{"applicationreports", "clusterimports", "enrollmentclasses", "healthrules"} {
		out = append(out, plural+"."+fleetv1alpha1.GroupVersion.Group)
	}
	return out
}

// configMap keeps the manager's config file; of other ConfigMaps, the names of their keys.
func configMap(u *unstructured.Unstructured) map[string]any {
	out := pick(u.Object)
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key := range data {
		if u.GetName() != configurationName || key != configurationKey {
			data[key] = removed
		}
	}
	_ = unstructured.SetNestedStringMap(out, data, "data")
	return out
}

// The ConfigMap with the manager's config file, and its key.
const (
	configurationName = "masthead-config"
	configurationKey  = "manager.yaml"
)
