// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"
	"slices"
)

// Orders of clusters, the most expensive one first.
const (
	ByMemory   = "memory"
	ByRequests = "requests"
	ByObjects  = "objects"
	ByQueue    = "queue"
	ByName     = "name"
)

// Orders lists all of them.
func Orders() []string { return []string{ByMemory, ByRequests, ByObjects, ByQueue, ByName} }

// Sort sorts clusters. Ties are sorted by name.
func Sort(clusters []Cluster, by string) {
	figure := func(c *Cluster) []float64 {
		switch by {
		case ByMemory:
			return []float64{c.Bytes, c.Rate(), c.Total()}
		case ByRequests:
			return []float64{c.Rate(), c.Total()}
		case ByObjects:
			return []float64{c.Objects}
		case ByQueue:
			return []float64{c.Queued, c.Hanging}
		}
		return nil
	}
	slices.SortFunc(clusters, func(a, b Cluster) int {
		return cmp.Or(slices.Compare(figure(&b), figure(&a)), cmp.Compare(a.Name, b.Name))
	})
}
