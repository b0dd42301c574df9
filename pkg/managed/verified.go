// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// State is an object in a workload cluster as it was when it was found or made what it should be. As long as neither
// has changed, it need not be read or written again. It also ends what could be an endless correction: an older API
// server drops fields that it does not know, a webhook of the cluster labels everything, or an API server counts
// generations in another way, so that the object never becomes equal.
type State struct {
	uid        types.UID
	generation int64
	want       string
	metadata   string
}

// StateOf is the state of an object that was compared with what is wanted. The generation does not count metadata:
// those that matter to the caller are part of the state.
func StateOf(have *unstructured.Unstructured, want string, metadata ...string) State {
	return State{uid: have.GetUID(), generation: have.GetGeneration(), want: want, metadata: strings.Join(metadata, " ")}
}

// Verified are the objects that were found or made right, in the state that they had then. It is safe for concurrent
// use.
type Verified[K comparable] struct {
	mu     sync.Mutex
	states map[K]State
}

// NewVerified returns a memory of nothing.
func NewVerified[K comparable]() *Verified[K] { return &Verified[K]{states: map[K]State{}} }

// Is is whether an object was found right in this state.
func (v *Verified[K]) Is(key K, state State) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.states[key] == state
}

// Set notes that an object is right in this state.
func (v *Verified[K]) Set(key K, state State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.states[key] = state
}

// Forget drops what was noted of some objects.
func (v *Verified[K]) Forget(which func(K) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.states, func(key K, _ State) bool { return which(key) })
}
