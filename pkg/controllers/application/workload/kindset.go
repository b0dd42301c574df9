// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"unique"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// KindSet are the kinds kept for each Application. Thousands of Applications share the same few kinds, and a Kind is
// mostly strings: a set would take two KiB per Application, and this takes eight bytes per kind.
type KindSet []unique.Handle[kindwatch.Kind]

func newKindSet(kinds sets.Set[kindwatch.Kind]) KindSet {
	if len(kinds) == 0 {
		return nil
	}
	out := make(KindSet, 0, len(kinds))
	for kind := range kinds {
		out = append(out, unique.Make(kind))
	}
	return out
}

// Set returns the kinds as a set.
func (s KindSet) Set() sets.Set[kindwatch.Kind] {
	kinds := sets.New[kindwatch.Kind]()
	for _, kind := range s {
		kinds.Insert(kind.Value())
	}
	return kinds
}
