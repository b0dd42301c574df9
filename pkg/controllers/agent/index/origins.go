// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// originIndex holds the objects of the hub that name an origin, by cluster identifier and origin. A query about one
// cluster costs what that cluster has.
type originIndex map[string]objects.Index[ownership.Origin, ownership.Place]

func (x originIndex) insert(o ownership.Origin, key ownership.Place) {
	if x[o.Identifier] == nil {
		x[o.Identifier] = objects.Index[ownership.Origin, ownership.Place]{}
	}
	x[o.Identifier].Insert(o, key)
}

func (x originIndex) remove(o ownership.Origin, key ownership.Place) {
	x[o.Identifier].Delete(o, key)
	if len(x[o.Identifier]) == 0 {
		delete(x, o.Identifier)
	}
}

// places returns the objects that name an origin.
func (x originIndex) places(o ownership.Origin) []ownership.Place { return x[o.Identifier].Values(o) }

// forgetKinds drops the origins of kinds that are no longer watched.
func (x originIndex) forgetKinds(kinds sets.Set[schema.GroupResource]) {
	for identifier, origins := range x {
		maps.DeleteFunc(origins, func(o ownership.Origin, _ sets.Set[ownership.Place]) bool { return kinds.Has(o.Resource) })
		if len(origins) == 0 {
			delete(x, identifier)
		}
	}
}

// originsIn returns the origins in a cluster that objects of the hub name.
func (h *Hub) originsIn(identifier string) []ownership.Origin {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.origins[identifier]))
}
