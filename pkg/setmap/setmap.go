// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package setmap

import "k8s.io/apimachinery/pkg/util/sets"

// A Map holds a set of values for each key. The zero value can be read; make one to write to it.
type Map[K, V comparable] map[K]sets.Set[V]

// Insert adds a value under a key.
func (m Map[K, V]) Insert(k K, v V) {
	if m[k] == nil {
		m[k] = sets.New[V]()
	}
	m[k].Insert(v)
}

// Delete removes a value from a key, if present.
func (m Map[K, V]) Delete(k K, v V) {
	m[k].Delete(v)
	if m[k].Len() == 0 {
		delete(m, k)
	}
}

// Values returns a copy of the values under a key, in no order.
func (m Map[K, V]) Values(k K) []V { return m[k].UnsortedList() }
