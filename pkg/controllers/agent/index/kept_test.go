// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/liveheap"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// limitedHub is a syncedHub with two enrolled clusters, w1 and w2, and a budget for what it keeps.
func limitedHub(t *testing.T, capacity int64) *Hub {
	t.Helper()
	h := syncedHub(t)
	h.Kept.Limit(limits.NewBudget(capacity))
	for _, id := range []string{"w1", "w2"} {
		h.Fleet.(*fakefleet.Fleet).Set(connection.Cluster{Name: mcr.ClusterName("c/f/" + id), Identifier: id})
	}
	return h
}

// in returns a place in a namespace of the hub.
func in(namespace, name string) ownership.Place {
	at := ownershiptest.InBar(name)
	at.Namespace = namespace
	return at
}

// large is an object with an annotation of so many bytes, as it is decoded.
func large(tb testing.TB, at ownership.Place, us ownership.Source, version int, bytes int) *unstructured.Unstructured {
	tb.Helper()
	annotations := []byte{}
	for key, value := range us.Annotations() {
		annotations = fmt.Appendf(annotations, "%q:%q,", key, value)
	}
	obj := &unstructured.Unstructured{}
	err := obj.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d",
		"annotations":{%s%q:%q,%q:%q}},"spec":{"size":1}}`, at.Kind.GroupVersion(), at.Kind.Kind, at.Namespace, at.Name,
		at.Namespace+at.Name, version, annotations, fleetv1alpha1.AdoptableByAnnotation, strings.Repeat("x", bytes/2), "acmeco.org/x", strings.Repeat("y", bytes/2)))
	if err != nil {
		tb.Fatal(err)
	}
	return obj
}

func TestKeep(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	whole := func(us ownership.Source, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := objectAt(ownershiptest.InBar("db"), us)
		if us == (ownership.Source{}) {
			obj.SetAnnotations(nil)
		}
		obj.Object["spec"] = map[string]any{"size": int64(1)}
		obj.SetLabels(map[string]string{"a": "b"})
		obj.SetFinalizers([]string{"a"})
		edit(obj)
		return obj
	}
	same := func(*unstructured.Unstructured) {}
	scoped := kind
	scoped.ClusterScoped = true
	enrolled, stranger := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownership.Source{Identifier: "w9", Namespace: "foo"}
	for name, tc := range map[string]struct {
		reason string
		kind   kindwatch.Kind
		obj    *unstructured.Unstructured
		whole  bool
	}{
		"Enrolled":      {reason: "Its claim is synchronised.", kind: kind, obj: whole(enrolled, same), whole: true},
		"NotEnrolled":   {reason: "No claim is.", kind: kind, obj: whole(stranger, same)},
		"NoSource":      {reason: "Anybody can create it.", kind: kind, obj: whole(ownership.Source{}, same)},
		"NotAClaim":     {reason: "The administrator creates these.", kind: scoped, obj: whole(ownership.Source{}, same), whole: true},
		"ForgedMark":    {reason: "A mark from the hub hides nothing.", kind: kind, obj: whole(enrolled, func(o *unstructured.Unstructured) { o.Object["metadata"].(map[string]any)[reducedField] = false })},
		"TooLargeToFit": {reason: "There is no room.", kind: kind, obj: large(t, ownershiptest.InBar("db"), enrolled, 1, 2<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			h := limitedHub(t, 1<<20)
			before := tc.obj.DeepCopy()
			got := h.Kept.Keep(tc.kind, tc.obj, int64(len(fmt.Sprint(tc.obj.Object))))
			if diff := cmp.Diff(before.Object, tc.obj.Object); diff != "" {
				t.Errorf("want the object unchanged (-want +got):\n%s", diff)
			}
			if tc.whole {
				if got != tc.obj {
					t.Errorf("%s Want it whole, got %v.", tc.reason, got.Object)
				}
				return
			}
			if !IsReduced(got) || got.Object["spec"] != nil || got.GetLabels() != nil || len(got.GetFinalizers()) > 0 {
				t.Errorf("%s Want it reduced, got %v.", tc.reason, got.Object)
			}
			if SourceOrZero(got) != SourceOrZero(tc.obj) || got.GetUID() != tc.obj.GetUID() || got.GetResourceVersion() != tc.obj.GetResourceVersion() {
				t.Errorf("want whose it is to be known, got %v", got.Object)
			}
		})
	}
}

// TestWhatNoEnrolledSourceOwnsTakesLittle: objects of the hub were kept whole, regardless of their owner.
func TestWhatNoEnrolledSourceOwnsTakesLittle(t *testing.T) {
	const objects, each = 300, 8 << 10
	for name, us := range map[string]ownership.Source{"NoSource": {}, "NotEnrolled": {Identifier: "w9", Namespace: "foo"}, "NoRoom": {Identifier: "w1", Namespace: "foo"}} {
		t.Run(name, func(t *testing.T) {
			h := limitedHub(t, 16<<10)
			grown := liveheap.Watch(t)
			for i := range objects {
				at := in("attacker", fmt.Sprintf("db-%d", i))
				h.Observe(at, large(t, at, us, 1000+i, 256<<10))
			}
			if got := grown(); got > objects*each+(2<<20) { // One object that is decoded takes its size several times.
				t.Errorf("want at most %d KiB of each object, got %d KiB", each>>10, got/objects>>10)
			}
			if all, err := h.Watcher.List(ownershiptest.InBar("").Kind); err != nil || len(all) != objects {
				t.Errorf("want all %d objects to be known, got %d (%v)", objects, len(all), err)
			}
			runtime.KeepAlive(h)
		})
	}
}

// TestStraysTakeNoRoomFromTheClusterThatTheyName: a tenant of the hub fills the budget with objects that name w1.
func TestStraysTakeNoRoomFromTheClusterThatTheyName(t *testing.T) {
	h := limitedHub(t, 2<<20)
	w1, w2 := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownership.Source{Identifier: "w2", Namespace: "foo"}
	version := 1000
	observe := func(at ownership.Place, us ownership.Source) {
		version++
		h.Observe(at, large(t, at, us, version, 128<<10))
	}
	kept := func(namespace string) (whole int) {
		all, err := h.Watcher.List(ownershiptest.InBar("").Kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range all {
			if item.Key.Namespace == namespace && !IsReduced(item.Object()) {
				whole++
			}
		}
		return whole
	}
	for i := range 40 {
		observe(in("attacker", fmt.Sprint("stray-", i)), w1)
	}
	if got := kept("attacker"); got < 8 || got > 16 {
		t.Errorf("want what there is room for to be whole, got %d objects", got)
	}
	// The share of each namespace is half of the budget, and within bar that of each cluster half of it.
	for i := range 3 {
		observe(in("bar", fmt.Sprint("db-", i)), w1)
		observe(in("bar", fmt.Sprint("other-", i)), w2)
	}
	until(t, "the objects of both clusters are whole as they change", func() bool {
		for i := range 3 {
			observe(in("bar", fmt.Sprint("db-", i)), w1)
			observe(in("bar", fmt.Sprint("other-", i)), w2)
		}
		return kept("bar") == 6
	})
	until(t, "the budget is not exceeded", func() bool {
		used, _ := h.Kept.budget.Used()
		return used <= h.Kept.budget.Capacity() && int64(kept("attacker")+kept("bar"))*(128<<10) <= h.Kept.budget.Capacity()
	})
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited for this in vain: %s", what)
		}
	}
}

// TestChargesEnd: what is gone, reduced or no longer watched is not charged.
func TestChargesEnd(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	at := ownershiptest.InBar("db")
	for name, end := range map[string]func(*Hub, *unstructured.Unstructured){
		"Reduced":   func(h *Hub, _ *unstructured.Unstructured) { h.Kept.ReduceSource("w1") },
		"Released":  func(h *Hub, o *unstructured.Unstructured) { o.SetAnnotations(nil); h.Observe(at, o) },
		"Unwatched": func(h *Hub, _ *unstructured.Unstructured) { h.Want(hubOffers) },
		"Yielded":   func(h *Hub, _ *unstructured.Unstructured) { h.Kept.evict(h.Kept.charged[at].account) },
		"WatchBehind": func(h *Hub, _ *unstructured.Unstructured) {
			_ = h.Kept.Keep(at.Kind, large(t, in("bar", "late"), us, 1, 64<<10), 64<<10)
			h.Kept.release(at)
			h.Kept.releaseGone(in("bar", "late"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := limitedHub(t, 1<<20)
			h.Observe(at, large(t, at, us, 1000, 64<<10))
			if used, all := h.Kept.budget.Used(); used < 64<<10 || len(all) != 1 {
				t.Fatalf("want the object to be charged, got %d and %v", used, all)
			}
			end(h, large(t, at, us, 1001, 64<<10))
			if used, all := h.Kept.budget.Used(); used != 0 || len(all) != 0 {
				t.Errorf("want nothing to be charged, got %d and %v", used, all)
			}
			if obj, err := h.Watcher.Get(at.Kind, at.NamespacedName); err == nil && name != "WatchBehind" && !IsReduced(obj) {
				t.Errorf("want it reduced, got %v", obj.Object)
			}
		})
	}
}

// TestIndexForgetsWhatIsGone: an index is queried with the stored object, of which little may be kept, and with the one
// that the watch reports as deleted.
func TestIndexForgetsWhatIsGone(t *testing.T) {
	at, long := ownershiptest.InBar("db"), strings.Repeat("x", 2*512)
	for name, annotations := range map[string]map[string]string{
		"Identifier": {fleetv1alpha1.SourceUIDAnnotation: long, fleetv1alpha1.SourceNamespaceAnnotation: "foo"},
		"Namespace":  {fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: long},
		"Left":       {fleetv1alpha1.ReleasedFromAnnotation: "w1/" + long},
	} {
		t.Run(name, func(t *testing.T) {
			h := limitedHub(t, 1<<20)
			whole := objectAt(at, ownership.Source{})
			whole.SetAnnotations(annotations)
			h.track(at, kindwatch.Event{Type: kindwatch.Added, Kind: at.Kind, Object: Reduced(whole)})
			h.track(at, kindwatch.Event{Type: kindwatch.Deleted, Kind: at.Kind, Object: whole})
			if len(h.origins) > 0 || len(h.left) > 0 {
				t.Errorf("want nothing of what is gone, got %v and %v", h.origins, h.left)
			}
		})
	}
}

// TestReadWhole: a cluster is enrolled after the watch has seen its object.
func TestReadWhole(t *testing.T) {
	us := ownership.Source{Identifier: "w9", Namespace: "foo"}
	h, at := limitedHub(t, 1<<20), ownershiptest.InBar("db")
	live := func(version int) *unstructured.Unstructured { return large(t, at, us, version, 64<<10) }
	h.Observe(at, live(1000))
	h.Fleet.(*fakefleet.Fleet).Set(connection.Cluster{Name: "c/f/w9", Identifier: "w9"})
	for name, version := range map[string]int{"Unchanged": 1000, "Older": 999} {
		h.Kept.ReadWhole(at, live(version))
		obj, err := h.Watcher.Get(at.Kind, at.NamespacedName)
		if err != nil || obj.GetResourceVersion() != "1000" {
			t.Fatalf("%s: want the watch's state, got %v (%v)", name, obj, err)
		}
	}
	if obj, _ := h.Watcher.Get(at.Kind, at.NamespacedName); IsReduced(obj) {
		t.Errorf("want it whole, got %v", obj.Object)
	}
	gone := in("bar", "gone")
	h.Kept.ReadWhole(gone, large(t, gone, us, 1, 64<<10))
	if _, err := h.Watcher.Get(gone.Kind, gone.NamespacedName); !apierrors.IsNotFound(err) {
		t.Errorf("want what the watch has seen deleted to stay so, got %v", err)
	}
	if _, charged := h.Kept.charged[gone]; charged {
		t.Error("want it not to be charged")
	}
}
