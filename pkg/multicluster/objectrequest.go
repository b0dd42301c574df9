// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// An ObjectRequest identifies an object of any kind in one cluster. One controller serves all kinds, so that a kind
// that is published later needs no own controller, and the fair queue sees all requests of a cluster.
type ObjectRequest struct {
	types.NamespacedName

	// ClusterName is the cluster that has the object.
	ClusterName mcr.ClusterName

	// Kind is how the object was watched when the request was made. A request of another version than the current one is
	// dropped: the watch of the new version makes a new one.
	Kind kindwatch.Kind
}

// String is the request in readable form.
func (r ObjectRequest) String() string {
	return "cluster://" + r.ClusterName.String() + "/" + r.Kind.String() + "/" + r.NamespacedName.String()
}

// Cluster implements mcreconcile.ClusterAware.
func (r ObjectRequest) Cluster() mcr.ClusterName { return r.ClusterName }

// WithCluster implements mcreconcile.ClusterAware.
func (r ObjectRequest) WithCluster(name mcr.ClusterName) ObjectRequest {
	r.ClusterName = name
	return r
}

// LogValues returns the log values of the request besides the cluster.
func (r ObjectRequest) LogValues() []any {
	return []any{"kind", r.Kind.Kind, "namespace", r.Namespace, "name", r.Name}
}
