// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

var thingKind = kindwatch.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, Resource: "things",
}

func thing(name string) Request {
	return Request{ClusterName: workloadA, Kind: thingKind, NamespacedName: types.NamespacedName{Namespace: "team-a", Name: name}}
}

// idle is an instance that looks after Things, and does nothing by itself.
func idle(t *testing.T) (*reconciler, *workload) {
	t.Helper()
	r := &reconciler{clock: clock.RealClock{}, metrics: NewMetrics(prometheus.NewRegistry())}
	r.workloads = newWorkloads(r)
	cl, err := cluster.New(apiConfig)
	if err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	t.Cleanup(queue.ShutDown)
	w, err := r.newWorkload(workloadA, cl, queue)
	if err != nil {
		t.Fatal(err)
	}
	w.lookAfter([]*declared{{kind: thingKind}}, references.Tenancy{})
	return r, w
}

// queued are the names of the objects that are to be looked at, each once.
func queued(w *workload) []string {
	var names []string
	for w.queue.Len() > 0 {
		req, _ := w.queue.Get()
		w.queue.Done(req)
		names = append(names, req.Name)
	}
	slices.Sort(names)
	return names
}

// TestCycleThatHasEnded: who was told of a cycle is looked at again when it ends, wherever that is, and however the
// news arrive.
func TestCycleThatHasEnded(t *testing.T) {
	_, w := idle(t)
	ring := func() {
		for from, to := range map[string]string{"a": "b", "b": "c", "c": "a"} {
			_, _ = w.depend(thing(from).key(), thing(from), []references.Source{sourceNamed(to)})
			w.tell(thing(from), references.ReasonCycle)
		}
		queued(w)
	}
	ring()
	_, _ = w.depend(thing("c").key(), thing("c"), nil)
	if got := queued(w); !slices.Equal(got, []string{"b"}) {
		t.Errorf("c does not depend on a any more: want b, which depends on c, to be looked at, got %v", got)
	}
	w.tell(thing("c"), references.ReasonResolved)
	queued(w)
	w.tell(thing("b"), references.ReasonResolved)
	if got := queued(w); !slices.Equal(got, []string{"a"}) {
		t.Errorf("b is not told of a cycle any more: want a, which depends on b, to be looked at, got %v", got)
	}

	ring()
	w.forget(thing("c"))
	if got := queued(w); !slices.Equal(got, []string{"b"}) {
		t.Errorf("c is gone: want b to be looked at, got %v", got)
	}

	ring()
	_, _ = w.depend(thing("c").key(), thing("c"), []references.Source{sourceNamed("a")})
	w.tell(thing("c"), references.ReasonCycle)
	if got := queued(w); len(got) > 0 {
		t.Errorf("nothing changed: want nothing to be looked at, got %v", got)
	}
}

// TestStateOfAClusterThatIsNotLookedAfterAnyMore: a look that ends after its cluster was let go leaves nothing behind.
func TestStateOfAClusterThatIsNotLookedAfterAnyMore(t *testing.T) {
	r, w := idle(t)
	late := func() {
		_, _ = w.depend(thing("a").key(), thing("a"), []references.Source{sourceNamed("b")}, watchOfDefinition(schema.GroupResource{Group: "g", Resource: "x"}))
		w.tell(thing("a"), references.ReasonSourceNotFound)
		r.whileLookedAfter(w, thingKind, func() { r.metrics.object(thing("a"), references.ReasonSourceNotFound) })
	}
	late()
	if len(w.dependencies.users) != 2 || len(w.told) != 1 {
		t.Fatalf("want what is watched and told to be noted, got %v, %v", w.dependencies.users, w.told)
	}
	w.ignore()
	late()
	if len(w.dependencies.users)+len(w.dependencies.of)+len(w.told) > 0 {
		t.Errorf("the class is disabled: want nothing to come back, got %v, %v", w.dependencies.users, w.told)
	}

	// The cluster is gone: there is no instance of it.
	w.lookAfter([]*declared{{kind: thingKind}}, references.Tenancy{})
	late()
	if len(r.metrics.reasons) > 0 {
		t.Errorf("want no series of a cluster that is gone, got %v", r.metrics.reasons)
	}
}
