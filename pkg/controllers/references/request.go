// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// hubName stands for the hub in place of a cluster's name.
const hubName mcr.ClusterName = ""

// Request is an object whose references are to be resolved, or, without a name, a cluster to reconcile.
type Request struct {
	types.NamespacedName

	// ClusterName is the cluster that has the object.
	ClusterName mcr.ClusterName

	// Kind is how the object is watched.
	Kind kindwatch.Kind
}

// String describes the request for people.
func (r Request) String() string {
	return "cluster://" + r.ClusterName.String() + "/" + r.Kind.String() + "/" + r.NamespacedName.String()
}

// key names the object.
func (r Request) key() objectKey { return newObjectKey(r.Kind.GroupKind(), r.NamespacedName) }

// Cluster implements mcreconcile.ClusterAware.
func (r Request) Cluster() mcr.ClusterName { return r.ClusterName }

// WithCluster implements mcreconcile.ClusterAware.
func (r Request) WithCluster(name mcr.ClusterName) Request {
	r.ClusterName = name
	return r
}

// LogValues are the request's log values besides the cluster.
func (r Request) LogValues() []any {
	return []any{"kind", r.Kind.Kind, "namespace", r.Namespace, "name", r.Name}
}

// objectKey names an object. Neither its version matters nor, if it has two groups, by which one it is read.
type objectKey struct {
	schema.GroupKind
	types.NamespacedName
}

func (k objectKey) String() string { return k.Kind + " " + k.NamespacedName.String() }

func newObjectKey(gk schema.GroupKind, name types.NamespacedName) objectKey {
	return objectKey{references.CanonicalKind(gk), name}
}

func keyOfSource(s references.Source) objectKey { return newObjectKey(s.GroupKind(), s.NamespacedName) }
