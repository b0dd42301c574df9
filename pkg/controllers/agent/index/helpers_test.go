// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// objectAt is an object of the hub that names a source.
func objectAt(place ownership.Place, us ownership.Source) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(place.Kind.GroupVersionKind)
	obj.SetNamespace(place.Namespace)
	obj.SetName(place.Name)
	obj.SetAnnotations(us.Annotations())
	return obj
}

// idleHub is a hub without a watcher.
func idleHub() *Hub {
	return NewHub(&fakefleet.Fleet{}, NewClusters(ClustersOptions{Engaged: func(*Cluster) {}, Disengaged: func(mcr.ClusterName) {}}),
		&multicluster.EventQueue[multicluster.ObjectRequest]{}, &multicluster.EventQueue[mcreconcile.Request]{})
}

// idleCluster is an instance of a cluster whose watcher does not run.
func idleCluster(t *testing.T, name mcr.ClusterName, id Identity) *Cluster {
	t.Helper()
	watcher, err := kindwatch.New(kindwatch.Options{Client: fakefleet.Objects{Interface: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}, Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	return NewCluster(Connection{Name: name, Identity: id, Watcher: watcher})
}

// watchedCluster is an instance of a cluster that has these claims.
func watchedCluster(t *testing.T, name mcr.ClusterName, kind kindwatch.Kind, claims ...runtime.Object) *Cluster {
	t.Helper()
	w := NewCluster(Connection{Name: name})
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		kind.GroupVersionResource(): kind.Kind + "List",
	}, claims...)
	w.Watcher = startWatcher(t, kindwatch.Options{Client: fakefleet.Objects{Interface: client}, Handler: func(kindwatch.Event) {}})
	w.Watcher.Set("test", kind)
	w.Follow(kind.GroupResource().String(), Followed{Kind: kind})
	if err := w.Watcher.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// startWatcher runs a watcher until the test ends.
func startWatcher(t *testing.T, o kindwatch.Options) *kindwatch.Watcher {
	t.Helper()
	w, err := kindwatch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// fakeHub is a hub whose API server is a fake that holds nothing.
func fakeHub(t *testing.T) *Hub {
	t.Helper()
	h := idleHub()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ownershiptest.InBar("").Kind.GroupVersionResource(): "MySQLInstanceList",
	})
	h.Watcher = startWatcher(t, kindwatch.Options{Client: fakefleet.Objects{Interface: client}, Handler: h.Handle, Keep: h.Kept.Keep})
	return h
}
