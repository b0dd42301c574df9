// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Place names a claim in the hub, or a place where one could be.
type Place struct {
	Kind kindwatch.Kind
	types.NamespacedName
}

// Origin names a claim in a workload cluster from the hub's point of view.
type Origin struct {
	Source
	Kind kindwatch.Kind
	Name string
}
