// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// delays is a queue that records the delays with which items were added.
type delays struct {
	workqueue.TypedRateLimitingInterface[mcreconcile.Request]
	added []time.Duration
}

func (d *delays) AddAfter(_ mcreconcile.Request, after time.Duration) {
	d.added = append(d.added, after)
}

var watchedKind = kindwatch.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", MetadataOnly: true}

// nopClient sends no requests.
type nopClient struct{ dynamicclient.Objects }

func TestWakingIsAtOnceAndThenCoalesced(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	queue := &delays{}
	key := record.ApplicationKey{Namespace: "ns", Name: "shop"}
	w := &Cluster{Clock: clk, queue: queue, applications: map[record.ApplicationKey]*Tracked{key: {}}}

	for _, tc := range []struct {
		reason string
		before func()
		want   time.Duration
	}{
		{reason: "The first change is acted upon at once.", before: func() {}, want: 0},
		{reason: "One that comes while it is acted upon waits.", before: func() { w.Begin(key) }, want: Coalescing},
		{reason: "So does the next one, until the same time.", before: func() { clk.Step(50 * time.Millisecond) }, want: Coalescing - 50*time.Millisecond},
		{reason: "After that, a change is acted upon at once.", before: func() { clk.Step(Coalescing) }, want: 0},
		{
			reason: "What a status waits for is acted upon at once.",
			before: func() { w.Settling(w.Begin(key), true) }, want: 0,
		},
	} {
		tc.before()
		queue.added = nil
		w.Wake(key, record.ApplicationKey{Namespace: "ns", Name: "another"})
		if len(queue.added) != 1 || queue.added[0] != tc.want {
			t.Errorf("%s Want %v, got %v", tc.reason, tc.want, queue.added)
		}
	}
}

func TestSettlingEnds(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	w, tr := &Cluster{Clock: clk}, &Tracked{}
	if got := w.Settling(tr, true); got != 0 {
		t.Errorf("want the wait to begin, got %v", got)
	}
	clk.Step(time.Second)
	if got := w.Settling(tr, true); got != time.Second {
		t.Errorf("want the wait to be one, got %v", got)
	}
	if got := w.Settling(tr, false); got != 0 {
		t.Errorf("want nothing to wait for, got %v", got)
	}
	if got := w.Settling(tr, true); got != 0 {
		t.Errorf("want another wait to be another one, got %v", got)
	}
}

// shopAndOther is a cluster with two Applications, and no watched kinds.
func shopAndOther(t *testing.T) (w *Cluster, key, other record.ApplicationKey) {
	t.Helper()
	watcher, err := kindwatch.New(kindwatch.Options{Client: nopClient{}, Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	key = record.ApplicationKey{Namespace: "ns", Name: "shop"}
	other = record.ApplicationKey{Namespace: "ns", Name: "other"}
	return &Cluster{
		Watcher: watcher, HealthChecks: healthcheck.New(testingclock.NewFakeClock(time.Unix(0, 0))),
		Wanted:       record.NewWantedMarks(testingclock.NewFakeClock(time.Unix(0, 0))),
		applications: map[record.ApplicationKey]*Tracked{key: {UID: "a"}, other: {UID: "b"}},
		byUID:        map[types.UID]record.ApplicationKey{}, users: map[kindwatch.Kind]sets.Set[record.ApplicationKey]{},
	}, key, other
}

// New kinds matter as long as an Application names one, whether or not the cluster serves it.
func TestDefinitionsAreWatchedWhileKindsAreNamed(t *testing.T) {
	w, key, other := shopAndOther(t)
	watched := func(reason string, want bool) {
		t.Helper()
		for _, kind := range []kindwatch.Kind{record.DefinitionKind, record.APIServiceKind} {
			if state, _ := w.Watcher.State(kind); (state != kindwatch.StateUnwatched) != want {
				t.Errorf("%s %s: want watched=%v, got %s", reason, kind, want, state)
			}
		}
	}
	named := sets.New("example.org")
	w.Watch(key, w.applications[key], nil, nil)
	watched("No kind is named.", false)
	w.Watch(key, w.applications[key], nil, named)
	watched("A kind is named that is not served.", true)
	w.Watch(other, w.applications[other], sets.New(watchedKind), sets.New(""))
	w.Untrack(key)
	watched("Another Application names one.", true)
	w.Watch(other, w.applications[other], nil, named)
	watched("What it names is not served any more.", true)
	w.Watch(other, w.applications[other], nil, nil)
	watched("It names none any more.", false)
	w.Watch(other, w.applications[other], sets.New(watchedKind), sets.New(""))
	w.Untrack(other)
	watched("It has gone.", false)
}

// The number of kinds that Applications can have watched in a cluster is bounded, and those that are watched stay so.
func TestKindsAreBounded(t *testing.T) {
	w, key, other := shopAndOther(t)
	kinds := sets.New[kindwatch.Kind]()
	for i := range maxKinds + 7 {
		k := watchedKind
		k.Version = "v" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		kinds.Insert(k)
	}
	if refused := w.Watch(key, w.applications[key], kinds, nil); len(refused) != 7 || len(w.users) != maxKinds {
		t.Errorf("want 7 to be refused, got %d, and %d are watched", len(refused), len(w.users))
	}
	if refused := w.Watch(other, w.applications[other], w.applications[key].Kinds.Set(), nil); len(refused) != 0 {
		t.Errorf("want no kind to be refused that is watched, got %d", len(refused))
	}
	w.Untrack(key)
	w.Untrack(other)
	if len(w.users) != 0 || len(w.applications) != 0 {
		t.Errorf("want nothing to be left, got %d kinds", len(w.users))
	}
	for kind := range kinds {
		if state, _ := w.Watcher.State(kind); state != kindwatch.StateUnwatched {
			t.Fatalf("want %s not to be watched, it is %s", kind, state)
		}
	}
	gone := &Tracked{UID: "c"}
	if refused := w.Watch(key, gone, kinds, nil); refused != nil || len(w.users) != 0 {
		t.Error("want nothing to be watched because of an Application that has gone")
	}
}

// The state of an Application does not apply to its successor of the same name. The deletion of the first may be
// reported later, or never: a broken watch shows only the second.
func TestARecreatedApplicationIsAnother(t *testing.T) {
	w, key, _ := shopAndOther(t)
	w.byUID["a"] = key
	w.dependents = map[record.ApplicationKey]sets.Set[record.ApplicationKey]{}
	w.Watch(key, w.applications[key], sets.New(watchedKind), sets.New(""))
	w.applications[key].Patched = map[types.UID]string{"cm": "1"}
	again := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "new"}}
	w.Track(key, again)
	tr := w.applications[key]
	if tr == nil || tr.UID != "new" || tr.Patched != nil || len(tr.Kinds) != 0 {
		t.Fatalf("want nothing to be known of it yet, got %+v", tr)
	}
	if _, old := w.byUID["a"]; old || w.byUID["new"] != key {
		t.Errorf("want it to be found by its own UID, got %v", w.byUID)
	}
	if state, _ := w.Watcher.State(watchedKind); state != kindwatch.StateUnwatched {
		t.Errorf("want nothing to be watched on behalf of the first, got %s", state)
	}
	w.Track(key, again)
	if w.applications[key] != tr {
		t.Error("want an Application that has changed to be the same one")
	}
}
