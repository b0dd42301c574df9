// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ForDefinition returns the request for one CRD in one workload cluster.
func ForDefinition(cluster mcr.ClusterName, crd string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: cluster,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Name: crd}},
	}
}

// A Request identifies one claim in one workload cluster. One controller serves the claims of all kinds, so that a kind
// published later needs no own controller, and the fair queue sees all requests of a cluster.
type Request struct {
	types.NamespacedName

	// ClusterName is the workload cluster.
	ClusterName mcr.ClusterName

	// Kind is the kind of the claim as published when the request was made. If another version has been published since,
	// the request is dropped: the watch of the new version makes a new one.
	Kind kindwatch.Kind
}

// String is the request in readable form.
func (r Request) String() string {
	return "cluster://" + r.ClusterName.String() + "/" + r.Kind.String() + "/" + r.NamespacedName.String()
}

// Cluster implements mcreconcile.ClusterAware.
func (r Request) Cluster() mcr.ClusterName { return r.ClusterName }

// WithCluster implements mcreconcile.ClusterAware.
func (r Request) WithCluster(name mcr.ClusterName) Request {
	r.ClusterName = name
	return r
}

// LogValues returns the log values of the request besides the cluster.
func (r Request) LogValues() []any {
	return []any{"kind", r.Kind.Kind, "namespace", r.Namespace, "name", r.Name}
}
