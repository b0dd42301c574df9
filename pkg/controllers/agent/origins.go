// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/setmap"
)

// originIndex are the objects of the hub that name an origin, by the identifier of its cluster and by the origin. Whoever asks about one
// cluster pays for what is of that cluster.
type originIndex map[string]setmap.Map[origin, hubKey]

func (x originIndex) insert(o origin, key hubKey) {
	if x[o.identifier] == nil {
		x[o.identifier] = setmap.Map[origin, hubKey]{}
	}
	x[o.identifier].Insert(o, key)
}

func (x originIndex) remove(o origin, key hubKey) {
	x[o.identifier].Delete(o, key)
	if len(x[o.identifier]) == 0 {
		delete(x, o.identifier)
	}
}

// places returns the objects that name an origin.
func (x originIndex) places(o origin) []hubKey { return x[o.identifier].Values(o) }

// forgetKinds drops what is of kinds that are not watched any more.
func (x originIndex) forgetKinds(kinds sets.Set[kindwatch.Kind]) {
	for identifier, origins := range x {
		maps.DeleteFunc(origins, func(o origin, _ sets.Set[hubKey]) bool { return kinds.Has(o.kind) })
		if len(origins) == 0 {
			delete(x, identifier)
		}
	}
}

// originsIn are the origins in a cluster of what is in the hub.
func (h *hub) originsIn(identifier string) []origin {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.origins[identifier]))
}
