// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// hubSource treats the hub as one more cluster, as long as the controller runs.
func (r *reconciler) hubSource(hub cluster.Cluster) source.TypedSource[Request] {
	return source.TypedFunc[Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		w, err := r.newWorkload(hubName, hub, queue)
		if err != nil {
			return err
		}
		r.hub.Store(w)
		go func() { _ = w.Start(ctx) }()
		w.enqueue()
		return nil
	})
}

// classUsers are the clusters that use a class, with the hub.
type classUsers struct {
	connection.Classes

	hubClass string
}

// InClass implements connection.Classes.
func (c classUsers) InClass(class string) []mcr.ClusterName {
	names := c.Classes.InClass(class)
	if class == c.hubClass {
		names = append(names, hubName)
	}
	return names
}
