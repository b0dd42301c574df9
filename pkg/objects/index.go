// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import "k8s.io/apimachinery/pkg/util/sets"

// An Index holds a set of values for each key. The cost of reading a key depends on its values alone, and a key without
// values takes no memory. It is not safe for concurrent use. The zero value can be read; make one to write to it.
type Index[K, V comparable] map[K]sets.Set[V]

// Insert adds a value under a key.
func (m Index[K, V]) Insert(k K, v V) {
	if m[k] == nil {
		m[k] = sets.New[V]()
	}
	m[k].Insert(v)
}

// Delete removes a value from a key, if present.
func (m Index[K, V]) Delete(k K, v V) {
	m[k].Delete(v)
	if m[k].Len() == 0 {
		delete(m, k)
	}
}

// Values returns a copy of the values under a key, in no order.
func (m Index[K, V]) Values(k K) []V { return m[k].UnsortedList() }
