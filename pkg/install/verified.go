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

// AppliedState stores the State of verified objects per key. It is safe for concurrent use.
type AppliedState[K comparable] struct {
	mu     sync.Mutex
	states map[K]State
}

// NewVerified returns an empty AppliedState.
func NewVerified[K comparable]() *AppliedState[K] { return &AppliedState[K]{states: map[K]State{}} }

// Is reports whether an object was verified in this state.
func (v *AppliedState[K]) Is(key K, state State) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.states[key] == state
}

// Set records that an object is right in this state.
func (v *AppliedState[K]) Set(key K, state State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.states[key] = state
}

// Forget drops the states of the selected objects.
func (v *AppliedState[K]) Forget(which func(K) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.states, func(key K, _ State) bool { return which(key) })
}
