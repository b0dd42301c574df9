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
		kinds = append(kinds, requiredKind{fleetv1alpha1.GroupVersion.WithResource("clusterimports"), installOurCRDs})
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
}

// requiredRights are the rights without which some part of the manager would fail later. They are exactly those of
// config/rbac; a test compares the two. Rights on claims are not among them: they are granted per API group, and a
// claim whose group is not granted reports that. So does a ClusterImport without the rights of config/imports.
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
		rights = append(rights,
			right{group: "fleet.masthead.dev", resource: "clusterimports", verbs: []string{"get", "list", "watch"}},
			right{group: "fleet.masthead.dev", resource: "clusterimports/status", verbs: []string{"patch"}})
	}
	return rights
}
