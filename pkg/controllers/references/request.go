// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/references"
)

// hubName stands for the hub in place of a cluster's name.
const hubName mcr.ClusterName = ""

// Request is an object whose references are to be resolved, or, without a name, a cluster to reconcile.
type Request = multicluster.ObjectRequest

// keyOfRequest names the object of a request.
func keyOfRequest(r Request) objectKey { return newObjectKey(r.Kind.GroupKind(), r.NamespacedName) }

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
