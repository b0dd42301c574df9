// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Place names a claim in the hub, or a place where one could be. Its kind is in the version in which the hub is read.
type Place struct {
	Kind kindwatch.Kind
	types.NamespacedName
}

// Origin names a claim in a workload cluster from the hub's point of view. Each side has its own version of the kind.
type Origin struct {
	Source
	Resource schema.GroupResource
	Name     string
}
