// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
)

// How to install what can be missing.
const (
	installOurCRDs    = "kubectl apply --server-side -k config/crd"
	installRights     = "kubectl apply --server-side -k config/rbac"
	installProfiles   = "kubectl apply --server-side -k config/clusterprofiles"
	installImports    = "kubectl apply --server-side -k config/imports"
	installClusterAPI = "clusterctl init, see https://cluster-api.sigs.k8s.io, or run without it, with the flag --sources=kubeconfig"
)

// requiredKind is a kind that the hub must serve before the manager can work.
type requiredKind struct {
	schema.GroupVersionResource
	install string
}

// requiredKinds are the kinds without which the manager cannot work. Crossplane is not among them: the agent waits for
// its XRDs, so that a hub can have a fleet before it offers anything to it. Cluster API is required if clusters come
// from it.
func requiredKinds(o Options) []requiredKind {
	kinds := []requiredKind{
		{fleetv1alpha1.GroupVersion.WithResource("enrollmentclasses"), installOurCRDs},
		{fleetv1alpha1.GroupVersion.WithResource("applicationreports"), installOurCRDs},
		{fleetv1alpha1.GroupVersion.WithResource("healthrules"), installOurCRDs},
		{schema.GroupVersionResource{
			Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles",
		}, installProfiles},
	}
	if o.uses(capi.SourceName) {
		kinds = append(kinds, requiredKind{schema.GroupVersionResource{
			Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters",
		}, installClusterAPI})
	}
	if o.Imports.Enabled {
		kinds = append(kinds, importKinds()...)
	}
	return kinds
}

// right is a permission that the manager needs on one resource.
type right struct {
	group, resource string
	// namespace is empty for all namespaces.
	namespace string
	// name is empty for all objects.
	name  string
	verbs []string
	// without describes what does not work if the right is not granted everywhere. Empty: nothing works, and the manager
	// waits for the right.
	without string
	// install says how to obtain it; empty means installRights.
	install string
}

// requiredRights are the rights without which some part of the manager would fail later. They are exactly those of
// config/rbac; a test compares the two. Rights on claims are not among them: they are granted per API group, and a
// claim whose group is not granted reports that.
func requiredRights(o Options) []right {
	namespace, watch := o.Namespace, []string{"list", "watch"}
	rights := []right{
		{group: "", resource: "secrets", verbs: watch},
		{
			group: "", resource: "secrets", verbs: []string{"get"},
			without: "clusters are connected, and connection Secrets delivered, only from namespaces in which a Role grants it",
		},
		{group: "", resource: "namespaces", verbs: watch},
		{group: "", resource: "namespaces", name: "kube-system", verbs: []string{"get"}},
		{
			group: "multicluster.x-k8s.io", resource: "clusterprofiles",
			verbs: []string{"list", "watch", "create", "patch", "delete"},
		},
		{group: "multicluster.x-k8s.io", resource: "clusterprofiles/status", verbs: []string{"patch"}},
		{group: "fleet.masthead.dev", resource: "enrollmentclasses", verbs: watch},
		{group: "fleet.masthead.dev", resource: "enrollmentclasses/status", verbs: []string{"patch"}},
		{
			group: "fleet.masthead.dev", resource: "applicationreports",
			verbs: []string{"list", "watch", "create", "patch", "delete"},
		},
		{group: "fleet.masthead.dev", resource: "applicationreports/status", verbs: []string{"patch"}},
		{group: "fleet.masthead.dev", resource: "healthrules", verbs: watch},
		{group: "fleet.masthead.dev", resource: "healthrules/status", verbs: []string{"patch"}},
		{group: "apiextensions.crossplane.io", resource: "compositeresourcedefinitions", verbs: watch},
		{
			group: "apiextensions.crossplane.io", resource: "compositions", verbs: watch,
			without: "Compositions are not shown in workload clusters",
		},
		{group: "apiextensions.crossplane.io", resource: "infrastructuredefinitions", verbs: watch},
		{group: "apiextensions.crossplane.io", resource: "infrastructurepublications", verbs: watch},
		{group: "apiextensions.k8s.io", resource: "customresourcedefinitions", verbs: []string{"get", "list", "watch"}},
		{group: "events.k8s.io", resource: "events", verbs: []string{"create", "patch"}},
		{group: "authentication.k8s.io", resource: "tokenreviews", verbs: []string{"create"}},
		{group: "authorization.k8s.io", resource: "subjectaccessreviews", verbs: []string{"create"}},
		{group: "coordination.k8s.io", resource: "leases", namespace: namespace, verbs: []string{"create"}},
		{
			group: "coordination.k8s.io", resource: "leases", namespace: namespace, name: leaseName,
			verbs: []string{"get", "update"},
		},
		{group: "", resource: "events", namespace: namespace, verbs: []string{"create", "patch"}},
	}
	if o.uses(capi.SourceName) {
		rights = append(rights, right{group: "cluster.x-k8s.io", resource: "clusters", verbs: watch})
	}
	if o.Imports.Enabled {
		rights = append(rights, importRights()...)
	}
	return rights
}

// importKinds are those that the importer needs besides the per-cloud kinds that it checks itself.
func importKinds() []requiredKind {
	return []requiredKind{{fleetv1alpha1.GroupVersion.WithResource("clusterimports"), installOurCRDs}}
}

// importRights are those of the ClusterRole masthead-imports in config/imports. The rights to each cloud's kinds are in
// separate ClusterRoles: the importer checks them when there is a ClusterImport for that cloud.
func importRights() []right {
	rights := []right{
		{group: "fleet.masthead.dev", resource: "clusterimports", verbs: []string{"get", "list", "watch", "patch"}},
		{group: "fleet.masthead.dev", resource: "clusterimports/status", verbs: []string{"patch"}},
		// The admission policies of config/policies check it; the API server does not serve this subresource.
		{group: "fleet.masthead.dev", resource: "clusterimports/objects", verbs: []string{"create"}},
		{
			group: "", resource: "secrets", verbs: []string{"create", "update", "delete"},
			without: "kubeconfigs of imported clusters are written only in namespaces in which a Role grants it",
		},
		{group: "cluster.x-k8s.io", resource: "clusters", verbs: []string{"get", "create", "patch", "delete"}},
		{group: "cluster.x-k8s.io", resource: "clusters/status", verbs: []string{"patch"}},
		{group: "cluster.x-k8s.io", resource: "machinepools", verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{group: "cluster.x-k8s.io", resource: "machinedeployments", verbs: []string{"list", "watch"}},
		{group: "cluster.x-k8s.io", resource: "machinesets", verbs: []string{"list", "watch"}},
		{group: "cluster.x-k8s.io", resource: "machines", verbs: []string{"list", "watch"}},
		{group: "cluster.x-k8s.io", resource: "machinepools/status", verbs: []string{"patch"}},
		{group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicies", verbs: []string{"get"}},
		{group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicybindings", verbs: []string{"get"}},
	}
	for i := range rights {
		rights[i].install = installImports
	}
	return rights
}
