// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// LogConstructor returns a constructor of loggers that always name the controller and, in a reconcile, the cluster and
// the object. The values are the keys "cluster" ("hub" for the hub), "namespace" and "name", and those that the request
// itself adds if it has a method LogValues() []any that returns keys and values.
//
// It works around kubernetes-sigs/multicluster-runtime v0.24.1's builder, whose constructor looks for
// *reconcile.Request. A multi-cluster request never is one, so that by default no log line of a reconcile names its
// cluster or object.
func LogConstructor[R mcreconcile.ClusterAware[R]](base logr.Logger, controller string) func(*R) logr.Logger {
	base = base.WithValues("controller", controller)
	return func(req *R) logr.Logger {
		if req == nil {
			return base
		}
		values := []any{"cluster", displayName((*req).Cluster())}
		switch r := any(*req).(type) {
		case mcreconcile.Request:
			values = append(values, "namespace", r.Namespace, "name", r.Name)
		case mcreconcile.WithCluster[reconcile.Request]:
			values = append(values, "namespace", r.Request.Namespace, "name", r.Request.Name)
		}
		if r, ok := any(*req).(interface{ LogValues() []any }); ok {
			values = append(values, r.LogValues()...)
		}
		// All at once: the logger is copied each time.
		return base.WithValues(values...)
	}
}
