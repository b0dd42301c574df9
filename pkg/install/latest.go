// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// State is the state of an object in a workload cluster when it was last verified or written. While neither the object
// nor the wanted content has changed, it need not be read or written again. It also prevents endless updates of an
// object that never becomes equal: an older API server drops unknown fields, a webhook of the cluster labels
// everything, or an API server counts generations differently.
type State struct {
	uid        types.UID
	generation int64
	want       string
	metadata   string
}

// CompareState returns the state of an object that was compared with what is wanted. The generation does not count
// metadata, so the caller passes the relevant ones.
func CompareState(have *unstructured.Unstructured, want string, metadata ...string) State {
	return State{uid: have.GetUID(), generation: have.GetGeneration(), want: want, metadata: strings.Join(metadata, " ")}
}

// Latest stores the latest value per key: the State of an object, the reason that was reported about it, since when it
// is so, or the enrolment of a cluster. A key without one has the zero value. The zero Latest is ready for use, and
// safe for concurrent use.
type Latest[K, V comparable] struct {
	mu     sync.Mutex
	values map[K]V
}

// Is reports whether a value is the latest one of a key.
func (l *Latest[K, V]) Is(key K, value V) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.values[key] == value
}

// Set stores the value of a key, and reports whether it differs from the previous one.
func (l *Latest[K, V]) Set(key K, value V) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values[key] == value {
		return false
	}
	l.setLocked(key, value)
	return true
}

func (l *Latest[K, V]) setLocked(key K, value V) {
	if l.values == nil {
		l.values = map[K]V{}
	}
	var none V
	if l.values[key] = value; value == none {
		delete(l.values, key)
	}
}

// Update replaces the value of a key by what fn returns for it, and returns both. It holds the lock while it calls fn:
// of two concurrent calls, the one that stores last has also read last.
func (l *Latest[K, V]) Update(key K, fn func(before V) V) (before, now V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.values[key]
	now = fn(before)
	l.setLocked(key, now)
	return before, now
}

// First returns the value of a key, which becomes this one if it has none.
func (l *Latest[K, V]) First(key K, value V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if has, ok := l.values[key]; ok {
		return has
	}
	l.setLocked(key, value)
	return value
}

// Forget drops the values of the selected keys.
func (l *Latest[K, V]) Forget(which func(K) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.values, func(key K, _ V) bool { return which(key) })
}
