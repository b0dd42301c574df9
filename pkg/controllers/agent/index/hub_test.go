// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestRefreshesAtOnceEndWithWhatIsThere(t *testing.T) {
	h := idleHub()
	watcher, err := kindwatch.New(kindwatch.Options{Client: fakefleet.Objects{Interface: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}, Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	h.Watcher = watcher // It is not started, and only records the kinds.
	w := NewCluster(Connection{Name: "w1", Watcher: watcher})
	h.Clusters.Add(t.Context(), w.Name, w)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			kind := ownershiptest.InBar("").Kind
			kind.Resource = fmt.Sprintf("r%d", i)
			for range 200 {
				w.Follow(kind.Resource, Followed{Kind: kind, InHub: true})
				h.RefreshFollowed(w)
				w.Follow(kind.Resource, Followed{})
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

// TestRefreshThatReadLaterWins begins a refresh of what is published while another one has read and not yet stored it.
func TestRefreshThatReadLaterWins(t *testing.T) {
	h := idleHub()
	h.Watcher = idleCluster(t, "hub", Identity{}).Watcher
	offers := func(version string) (map[string]crossplane.Publication, bool) {
		kind := ownershiptest.InBar("").Kind
		kind.Version = version
		return map[string]crossplane.Publication{kind.GroupResource().String(): {Kind: kind}}, true
	}
	later := func() {
		h.refreshPublished(func() (map[string]crossplane.Publication, bool) { return offers("v2") })
	}
	var running sync.WaitGroup
	h.refreshPublished(func() (map[string]crossplane.Publication, bool) {
		if h.refreshing.TryLock() {
			// Nothing keeps the later one from being first.
			h.refreshing.Unlock()
			later()
		} else {
			running.Go(later)
		}
		return offers("v1")
	})
	running.Wait()
	want, _ := offers("v2")
	if diff := cmp.Diff(want, h.publications(), cmp.AllowUnexported(crossplane.Publication{})); diff != "" {
		t.Errorf("want what was read last (-want +got):\n%s", diff)
	}
}

// syncedHub is a fakeHub that knows the claims of the kind of ownershiptest.
func syncedHub(t *testing.T) *Hub {
	t.Helper()
	h := fakeHub(t)
	h.published["mysqlinstances.db.acmeco.org"] = crossplane.Publication{Kind: ownershiptest.InBar("").Kind}
	h.refreshOffered()
	if err := h.Watcher.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestObservedObjectsAreInTheIndexOfOrigins(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	h, kind := syncedHub(t), ownershiptest.InBar("").Kind
	obj := objectAt(ownershiptest.InBar("db"), us)
	obj.SetResourceVersion("1000")
	h.Observe(ownershiptest.InBar("db"), obj)
	o := ownership.Origin{Source: us, Resource: kind.GroupResource(), Name: "db"}
	if diff := cmp.Diff([]ownership.Place{ownershiptest.InBar("db")}, h.Places(o), cmp.AllowUnexported(ownership.Place{})); diff != "" {
		t.Errorf("want what was written to be known (-want +got):\n%s", diff)
	}
	gone := obj.DeepCopy()
	gone.SetNamespace("gone")
	h.track(ownership.Place{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "gone", Name: "db"}}, kindwatch.Event{Type: kindwatch.Added, Kind: kind, Object: gone})
	if diff := cmp.Diff([]ownership.Place{ownershiptest.InBar("db")}, h.Places(o), cmp.AllowUnexported(ownership.Place{})); diff != "" {
		t.Errorf("want what the watch does not know to be no place (-want +got):\n%s", diff)
	}
}

// TestALateAnswerAboutADeletedObjectIsNoOrphan has the hub answer a write when its watch has already reported that the
// object is gone. It stayed in the index of origins, and was counted as an orphan until the process ended.
func TestALateAnswerAboutADeletedObjectIsNoOrphan(t *testing.T) {
	us, other := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownership.Source{Identifier: "w2", Namespace: "foo"}
	place := ownershiptest.InBar("db")
	late := objectAt(place, us)
	late.SetResourceVersion("1") // That of the list, which does not have it.
	current := objectAt(place, other)
	current.SetUID("another")
	current.SetResourceVersion("1000")
	for name, tc := range map[string]struct {
		reason string
		there  *unstructured.Unstructured
		want   []ownership.Origin
	}{
		"Gone":     {reason: "There is nothing in its place."},
		"Replaced": {reason: "Another cluster's object is in its place.", there: current, want: []ownership.Origin{{Source: other, Resource: place.Kind.GroupResource(), Name: place.Name}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := syncedHub(t)
			if tc.there != nil {
				h.Observe(place, tc.there)
			}
			h.Observe(place, late)
			if got := h.originsIn(us.Identifier); len(got) != 0 {
				t.Errorf("%s Want nothing to be known of it, got %v.", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, h.originsIn(other.Identifier)); diff != "" {
				t.Errorf("%s Want the other to be known as before (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTheHubIsReadInItsOwnVersion(t *testing.T) {
	ours := ownershiptest.InBar("").Kind
	in := func(version string) kindwatch.Kind {
		kind := ours
		kind.Version = version
		return kind
	}
	for name, tc := range map[string]struct {
		reason    string
		published string
		served    []string
		want      string
	}{
		"Unknown":    {reason: "As long as nothing is known, the version is the cluster's.", want: ours.Version},
		"Published":  {reason: "The published version is not the cluster's.", published: "v2", want: "v2"},
		"Served":     {reason: "Of several served versions, the published one counts.", published: "v2", served: []string{"v3", "v2"}, want: "v2"},
		"NotServed":  {reason: "A version that is not served cannot be read.", published: "v2", served: []string{"v3"}, want: "v3"},
		"Withdrawn":  {reason: "Without a published version, a served one can be read.", served: []string{"v3", ours.Version}, want: "v3"},
		"NoneServed": {reason: "If there is none, the watch says so.", published: "v2", served: []string{}, want: "v3"},
	} {
		t.Run(name, func(t *testing.T) {
			h := engagedHub(t, 2)
			w, _ := h.Clusters.Get("w1")
			w.Follow("first", Followed{Kind: in("v0"), InHub: true})
			h.RefreshFollowed(w)
			w.Follow("first", Followed{}) // The other cluster's version is the only one that is left.
			h.RefreshFollowed(w)
			from := ownership.Origin{Source: ownership.Source{Identifier: "id", Namespace: "foo"}, Resource: ours.GroupResource(), Name: "db"}
			h.origins.insert(from, ownershiptest.InBar("db"))
			if tc.published != "" {
				h.published[ours.GroupResource().String()] = crossplane.Publication{Kind: in(tc.published)}
				h.refreshOffered()
			}
			if tc.served != nil {
				h.SetServed(in("v3"), tc.served)
			}
			if got := h.HubKind(ours); got != in(tc.want) {
				t.Errorf("%s Got %s.", tc.reason, got)
			}
			if diff := cmp.Diff([]kindwatch.Kind{in(tc.want)}, h.WatchedKinds()); diff != "" {
				t.Errorf("%s Watched (-want +got):\n%s", tc.reason, diff)
			}
			if known := len(h.origins.places(from)) > 0; known != (tc.want == ours.Version) {
				t.Errorf("want what was read in another version to be forgotten, and nothing else; known: %t", known)
			}
		})
	}
}
