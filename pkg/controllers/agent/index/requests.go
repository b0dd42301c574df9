// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// RequestMap maps requests to values, by cluster: the cost of forgetting a cluster depends on what that cluster has,
// and not on the size of the fleet. It is not safe for concurrent use. A nil RequestMap can be read.
type RequestMap[V any] map[mcr.ClusterName]map[multicluster.ObjectRequest]V

// Get returns the value of a request.
func (m RequestMap[V]) Get(req multicluster.ObjectRequest) (V, bool) {
	v, ok := m[req.ClusterName][req]
	return v, ok
}

// Set replaces the value of a request.
func (m RequestMap[V]) Set(req multicluster.ObjectRequest, v V) {
	if m[req.ClusterName] == nil {
		m[req.ClusterName] = map[multicluster.ObjectRequest]V{}
	}
	m[req.ClusterName][req] = v
}

// Delete drops the value of a request.
func (m RequestMap[V]) Delete(req multicluster.ObjectRequest) {
	delete(m[req.ClusterName], req)
	if len(m[req.ClusterName]) == 0 {
		delete(m, req.ClusterName)
	}
}

// Forget drops the values of a cluster's requests that are gone.
func (m RequestMap[V]) Forget(name mcr.ClusterName, gone func(multicluster.ObjectRequest) bool) {
	maps.DeleteFunc(m[name], func(req multicluster.ObjectRequest, _ V) bool { return gone(req) })
	if len(m[name]) == 0 {
		delete(m, name)
	}
}

// waits are what requests wait for. They are not safe for concurrent use.
type waits[K comparable] struct {
	requests objects.Index[K, multicluster.ObjectRequest]
	keys     RequestMap[[]K]
}

func newWaits[K comparable]() waits[K] {
	return waits[K]{requests: objects.Index[K, multicluster.ObjectRequest]{}, keys: RequestMap[[]K]{}}
}

// set replaces what a request waits for.
func (w waits[K]) set(req multicluster.ObjectRequest, keys ...K) {
	before, _ := w.keys.Get(req)
	for _, key := range before {
		w.requests.Delete(key, req)
	}
	w.keys.Delete(req)
	if len(keys) > 0 {
		w.keys.Set(req, keys)
	}
	for _, key := range keys {
		w.requests.Insert(key, req)
	}
}

// DefinitionRequest returns the request for one CRD in one workload cluster.
func DefinitionRequest(cluster mcr.ClusterName, crd string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: cluster,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Name: crd}},
	}
}
