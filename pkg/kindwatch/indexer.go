// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// An indexer holds items, and finds them by index key or by namespace.
type indexer struct {
	items      map[types.NamespacedName]*Item
	index      groups
	namespaces groups
}

func newIndexer() indexer {
	return indexer{items: map[types.NamespacedName]*Item{}, index: groups{}, namespaces: groups{}}
}

// newIndexerFrom returns an indexer with the given items. Of several with one key, the last one wins.
func newIndexerFrom(all []*Item) indexer {
	s := newIndexer()
	for _, i := range all {
		s.items[i.Key] = i
	}
	for _, i := range s.items {
		for _, k := range i.indexKeys {
			s.index[k] = append(s.index[k], i)
		}
		if i.inNamespace() {
			s.namespaces[i.Key.Namespace] = append(s.namespaces[i.Key.Namespace], i)
		}
	}
	s.index.sort()
	s.namespaces.sort()
	return s
}

// put adds an item, or replaces the one with the same key.
func (s indexer) put(i *Item) {
	if old := s.items[i.Key]; old != nil {
		for _, k := range old.indexKeys {
			if !slices.Contains(i.indexKeys, k) {
				s.index.remove(k, old)
			}
		}
		if old.inNamespace() && !i.inNamespace() {
			s.namespaces.remove(old.Key.Namespace, old)
		}
	}
	s.items[i.Key] = i
	for _, k := range i.indexKeys {
		s.index.put(k, i)
	}
	if i.inNamespace() {
		s.namespaces.put(i.Key.Namespace, i)
	}
}

func (s indexer) remove(key types.NamespacedName) {
	old := s.items[key]
	if old == nil {
		return
	}
	delete(s.items, key)
	for _, k := range old.indexKeys {
		s.index.remove(k, old)
	}
	if old.inNamespace() {
		s.namespaces.remove(key.Namespace, old)
	}
}

func (s indexer) bytes() int64 {
	bytes := int64(0)
	for _, i := range s.items {
		bytes += i.size
	}
	return bytes
}

// groups are items by a common attribute, each group sorted by key. They are slices rather than maps of items: most
// groups are small, and a map for each would be larger than the items.
type groups map[string][]*Item

func (g groups) sort() {
	for _, found := range g {
		slices.SortFunc(found, byKey)
	}
}

// put adds an item to a group, or replaces the one with the same key.
func (g groups) put(name string, i *Item) {
	at, found := slices.BinarySearchFunc(g[name], i, byKey)
	if found {
		g[name][at] = i
	} else {
		g[name] = slices.Insert(g[name], at, i)
	}
}

// remove removes the item with the key of i from a group.
func (g groups) remove(name string, i *Item) {
	at, found := slices.BinarySearchFunc(g[name], i, byKey)
	switch {
	case !found:
	case len(g[name]) == 1:
		delete(g, name)
	default:
		g[name] = slices.Delete(g[name], at, at+1)
	}
}

func byKey(a, b *Item) int { return compareKeys(a.Key, b.Key) }

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
