// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"unique"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// KindSet are kinds that are remembered of every Application. Thousands of Applications have the same few, and a Kind
// is mostly strings: a set of them would take two KiB of each Application, and this takes eight bytes for a kind.
type KindSet []unique.Handle[kindwatch.Kind]

func kindSetOf(kinds sets.Set[kindwatch.Kind]) KindSet {
	if len(kinds) == 0 {
		return nil
	}
	out := make(KindSet, 0, len(kinds))
	for kind := range kinds {
		out = append(out, unique.Make(kind))
	}
	return out
}

// Set are the kinds.
func (s KindSet) Set() sets.Set[kindwatch.Kind] {
	kinds := sets.New[kindwatch.Kind]()
	for _, kind := range s {
		kinds.Insert(kind.Value())
	}
	return kinds
}
