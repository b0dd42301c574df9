// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// perRequest holds something about requests, by their cluster: what a cluster leaves behind is forgotten at a cost that depends on that
// cluster, and not on the fleet. It is not safe for concurrent use, and nil can be read.
type perRequest[V any] map[mcr.ClusterName]map[Request]V

func (m perRequest[V]) get(req Request) (V, bool) {
	v, ok := m[req.ClusterName][req]
	return v, ok
}

func (m perRequest[V]) set(req Request, v V) {
	if m[req.ClusterName] == nil {
		m[req.ClusterName] = map[Request]V{}
	}
	m[req.ClusterName][req] = v
}

func (m perRequest[V]) delete(req Request) {
	delete(m[req.ClusterName], req)
	if len(m[req.ClusterName]) == 0 {
		delete(m, req.ClusterName)
	}
}

// forget drops what is held about those requests of a cluster that are gone.
func (m perRequest[V]) forget(name mcr.ClusterName, gone func(Request) bool) {
	maps.DeleteFunc(m[name], func(req Request, _ V) bool { return gone(req) })
	if len(m[name]) == 0 {
		delete(m, name)
	}
}
