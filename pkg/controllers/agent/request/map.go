// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Map maps requests to values, by cluster: the cost of forgetting a cluster depends on what that cluster has, and not
// on the size of the fleet. It is not safe for concurrent use. A nil Map can be read.
type Map[V any] map[mcr.ClusterName]map[Request]V

// Get returns the value of a request.
func (m Map[V]) Get(req Request) (V, bool) {
	v, ok := m[req.ClusterName][req]
	return v, ok
}

// Set replaces the value of a request.
func (m Map[V]) Set(req Request, v V) {
	if m[req.ClusterName] == nil {
		m[req.ClusterName] = map[Request]V{}
	}
	m[req.ClusterName][req] = v
}

// Delete drops the value of a request.
func (m Map[V]) Delete(req Request) {
	delete(m[req.ClusterName], req)
	if len(m[req.ClusterName]) == 0 {
		delete(m, req.ClusterName)
	}
}

// Forget drops the values of a cluster's requests that are gone.
func (m Map[V]) Forget(name mcr.ClusterName, gone func(Request) bool) {
	maps.DeleteFunc(m[name], func(req Request, _ V) bool { return gone(req) })
	if len(m[name]) == 0 {
		delete(m, name)
	}
}
