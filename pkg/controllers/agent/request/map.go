// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Map holds something about requests, by their cluster: what a cluster leaves behind is forgotten at a cost that
// depends on that cluster, and not on the fleet. It is not safe for concurrent use, and nil can be read.
type Map[V any] map[mcr.ClusterName]map[Request]V

// Get returns what is held about a request.
func (m Map[V]) Get(req Request) (V, bool) {
	v, ok := m[req.ClusterName][req]
	return v, ok
}

// Set holds something about a request instead of what was held before.
func (m Map[V]) Set(req Request, v V) {
	if m[req.ClusterName] == nil {
		m[req.ClusterName] = map[Request]V{}
	}
	m[req.ClusterName][req] = v
}

// Delete drops what is held about a request.
func (m Map[V]) Delete(req Request) {
	delete(m[req.ClusterName], req)
	if len(m[req.ClusterName]) == 0 {
		delete(m, req.ClusterName)
	}
}

// Forget drops what is held about those requests of a cluster that are gone.
func (m Map[V]) Forget(name mcr.ClusterName, gone func(Request) bool) {
	maps.DeleteFunc(m[name], func(req Request, _ V) bool { return gone(req) })
	if len(m[name]) == 0 {
		delete(m, name)
	}
}
