// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A shelf holds items, and finds those whose records have an index key. The index has slices rather than maps of items: most keys
// have few items, and a map of its own for each would be larger than the items are.
type shelf struct {
	items map[types.NamespacedName]*item
	index map[string][]*item
}

func newShelf() shelf {
	return shelf{items: map[types.NamespacedName]*item{}, index: map[string][]*item{}}
}

// shelve puts many items on a new shelf. Of several with one key, the last one stays.
func shelve(all []*item) shelf {
	s := newShelf()
	for _, i := range all {
		s.items[i.Key] = i
	}
	for _, i := range s.items {
		for _, k := range i.indexKeys {
			s.index[k] = append(s.index[k], i)
		}
	}
	for _, found := range s.index {
		slices.SortFunc(found, byKey)
	}
	return s
}

// put puts an item in the place of the one with the same key.
func (s shelf) put(i *item) {
	if old := s.items[i.Key]; old != nil {
		for _, k := range old.indexKeys {
			if !slices.Contains(i.indexKeys, k) {
				s.unindex(k, old)
			}
		}
	}
	s.items[i.Key] = i
	for _, k := range i.indexKeys {
		at, found := slices.BinarySearchFunc(s.index[k], i, byKey)
		if found {
			s.index[k][at] = i
		} else {
			s.index[k] = slices.Insert(s.index[k], at, i)
		}
	}
}

func (s shelf) remove(key types.NamespacedName) {
	old := s.items[key]
	if old == nil {
		return
	}
	delete(s.items, key)
	for _, k := range old.indexKeys {
		s.unindex(k, old)
	}
}

func (s shelf) unindex(indexKey string, i *item) {
	at, found := slices.BinarySearchFunc(s.index[indexKey], i, byKey)
	switch {
	case !found:
	case len(s.index[indexKey]) == 1:
		delete(s.index, indexKey)
	default:
		s.index[indexKey] = slices.Delete(s.index[indexKey], at, at+1)
	}
}

func (s shelf) bytes() int64 {
	bytes := int64(0)
	for _, i := range s.items {
		bytes += i.size
	}
	return bytes
}

func byKey(a, b *item) int { return compareKeys(a.Key, b.Key) }

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
