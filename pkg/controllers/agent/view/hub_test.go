// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestRefreshesAtOnceEndWithWhatIsThere(t *testing.T) {
	h := idleHub()
	watcher, err := kindwatch.New(kindwatch.Options{Client: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	h.Watcher = watcher // It is not started, and only records the kinds.
	w := NewCluster(Connection{Name: "w1", Watcher: watcher})
	h.Clusters.Add(w.Name, nil, w)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			kind := ownershiptest.InBar("").Kind
			kind.Resource = fmt.Sprintf("r%d", i)
			for range 200 {
				w.Follow(kind.Resource, Followed{Kind: kind, InHub: true})
				h.RefreshFollowed(w)
				w.Unfollow(kind.Resource)
				h.RefreshFollowed(w)
			}
			if i%2 == 0 {
				w.Follow(kind.Resource, Followed{Kind: kind, InHub: true})
				h.RefreshFollowed(w)
			}
		})
	}
	running.Wait()
	if diff := cmp.Diff(sets.New(w.HubKinds()...), sets.New(h.WatchedKinds()...)); diff != "" {
		t.Errorf("want the hub to watch what is followed (-want +got):\n%s", diff)
	}
}

func TestObservedObjectsAreInTheIndexOfOrigins(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	h := fakeHub(t)
	kind := ownershiptest.InBar("").Kind
	h.published["mysqlinstances.db.acmeco.org"] = crossplane.Publication{Kind: kind}
	h.refreshOffered()
	if err := h.Watcher.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	obj := objectAt(ownershiptest.InBar("db"), us)
	obj.SetResourceVersion("1000")
	h.Observe(ownershiptest.InBar("db"), obj)
	o := ownership.Origin{Source: us, Kind: kind, Name: "db"}
	if diff := cmp.Diff([]ownership.Place{ownershiptest.InBar("db")}, h.PlacesOf(o), cmp.AllowUnexported(ownership.Place{})); diff != "" {
		t.Errorf("want what was written to be known (-want +got):\n%s", diff)
	}
	gone := obj.DeepCopy()
	gone.SetNamespace("gone")
	h.track(ownership.Place{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "gone", Name: "db"}}, kindwatch.Event{Type: kindwatch.Added, Kind: kind, Object: gone})
	if diff := cmp.Diff([]ownership.Place{ownershiptest.InBar("db")}, h.PlacesOf(o), cmp.AllowUnexported(ownership.Place{})); diff != "" {
		t.Errorf("want what the watch does not know to be no place (-want +got):\n%s", diff)
	}
}
