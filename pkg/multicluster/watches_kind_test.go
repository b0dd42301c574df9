// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Kinds that tests watch.
var (
	configMaps = kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"}
	pods       = kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods"}
	namespaces = kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces", ClusterScoped: true,
	}
)

// watchKinds returns Instances that watch kinds in every cluster as Masthead's controllers do, and enqueue their
// objects.
func watchKinds(kinds ...kindwatch.Kind) *Instances[mcreconcile.Request, *kindwatch.Watcher] {
	return NewInstances(InstancesOptions[mcreconcile.Request, *kindwatch.Watcher]{
		What: "objects",
		New: func(
			name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request],
		) (*kindwatch.Watcher, error) {
			o, err := WatchOptions(cl)
			if err != nil {
				return nil, err
			}
			o.Handler = func(e kindwatch.Event) {
				if e.Object != nil {
					r := request(name, e.Object.GetName())
					r.Namespace = e.Object.GetNamespace()
					queue.Add(r)
				}
			}
			w, err := kindwatch.New(o)
			if err == nil {
				w.Set("test", kinds...)
			}
			return w, err
		},
		Removed: func(mcr.ClusterName) {},
	})
}

// startedWatcher returns the watcher of the instance of a cluster that was engaged last.
func startedWatcher(
	t *testing.T, instances *Instances[mcreconcile.Request, *kindwatch.Watcher], name mcr.ClusterName,
) *kindwatch.Watcher {
	t.Helper()
	w, ok := instances.Get(name)
	if !ok {
		t.Fatalf("cluster %q has no watcher", name)
	}
	return w
}
