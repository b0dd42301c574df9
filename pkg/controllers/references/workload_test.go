// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

var thingKind = kindwatch.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, Resource: "things",
}

func thing(name string) Request {
	return Request{ClusterName: workloadA, Kind: thingKind, NamespacedName: types.NamespacedName{Namespace: "team-a", Name: name}}
}

// idle is an instance that manages Things, and does nothing by itself.
func idle(t *testing.T) (*reconciler, *workload) {
	t.Helper()
	return idleIn(t, apiConfig, workloadA)
}

// startWatcher has a cluster watched until the test ends.
func startWatcher(t *testing.T, w *workload) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.watcher.Start(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// idleIn is idle for a cluster.
func idleIn(t *testing.T, cfg *rest.Config, name mcr.ClusterName) (*reconciler, *workload) {
	t.Helper()
	r := &reconciler{clock: clock.RealClock{}, metrics: NewMetrics(prometheus.NewRegistry())}
	r.workloads = newWorkloads(r)
	cl, err := cluster.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	queue := atOnce{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())}
	t.Cleanup(queue.ShutDown)
	w, err := r.newWorkload(name, cl, queue)
	if err != nil {
		t.Fatal(err)
	}
	w.lookAfter([]*declared{{kind: thingKind}}, references.Tenancy{})
	return r, w
}

// atOnce is a queue without delays.
type atOnce struct {
	workqueue.TypedRateLimitingInterface[Request]
}

func (q atOnce) AddAfter(req Request, _ time.Duration) { q.Add(req) }

// delays is a queue that records the delays.
type delays struct {
	workqueue.TypedRateLimitingInterface[Request]

	of *[]time.Duration
}

func (q delays) AddAfter(_ Request, after time.Duration) { *q.of = append(*q.of, after) }

// TestKeepControllerBusyByHeartbeat: the changes of a source within a while are one for the objects that depend on it:
// the queue has an object that is added with a delay once, until the first of its delays is over.
func TestKeepControllerBusyByHeartbeat(t *testing.T) {
	_, w := idle(t)
	w.watches(thing("a"), sourceNamed("b"))
	queued(w)
	var of []time.Duration
	w.queue = delays{w.queue, &of}
	for range 2 {
		w.changed(kindwatch.Event{Kind: watchedKind(sourceNamed("b")), Entry: &kindwatch.Entry{Key: sourceNamed("b").NamespacedName}})
	}
	if n := w.queue.Len(); n > 0 || !slices.Equal(of, []time.Duration{coalesce, coalesce}) {
		t.Errorf("want each change to wait for more, got %d at once, and %v", n, of)
	}
}

// queued are the names of the objects that are to be reconciled, each once.
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

// TestCycleThatHasEnded: an object that was reported to be in a cycle is reconciled again when the cycle ends,
// regardless of where it ends and how that is noticed.
func TestCycleThatHasEnded(t *testing.T) {
	_, w := idle(t)
	ring := func() {
		for from, to := range map[string]string{"a": "b", "b": "c", "c": "a"} {
			_, _ = w.depend(thing(from), 0, []references.Source{sourceNamed(to)})
			w.noteReason(thing(from), commonv1alpha1.ReasonCycle)
		}
		queued(w)
	}
	ring()
	_, _ = w.depend(thing("c"), 0, nil)
	if got := queued(w); !slices.Equal(got, []string{"b"}) {
		t.Errorf("c does not depend on a any more: want b, which depends on c, to be looked at, got %v", got)
	}
	w.noteReason(thing("c"), commonv1alpha1.ReasonResolved)
	queued(w)
	w.noteReason(thing("b"), commonv1alpha1.ReasonResolved)
	if got := queued(w); !slices.Equal(got, []string{"a"}) {
		t.Errorf("b does not report a cycle any more: want a, which depends on b, to be looked at, got %v", got)
	}

	ring()
	w.forget(thing("c"))
	if got := queued(w); !slices.Equal(got, []string{"b"}) {
		t.Errorf("c is gone: want b to be looked at, got %v", got)
	}

	ring()
	_, _ = w.depend(thing("c"), 0, []references.Source{sourceNamed("a")})
	w.noteReason(thing("c"), commonv1alpha1.ReasonCycle)
	if got := queued(w); len(got) > 0 {
		t.Errorf("nothing changed: want nothing to be looked at, got %v", got)
	}
}

// TestStateOfAClusterThatIsNotLookedAfterAnyMore: a reconcile that ends after its cluster is no longer managed leaves
// nothing behind.
func TestStateOfAClusterThatIsNotLookedAfterAnyMore(t *testing.T) {
	r, w := idle(t)
	r.workloads.Add(t.Context(), w.name, w)
	late := func() {
		_, _ = w.depend(thing("a"), 0, []references.Source{sourceNamed("b")}, watchOfDefinition(schema.GroupResource{Group: "g", Resource: "x"}))
		w.noteReason(thing("a"), commonv1alpha1.ReasonSourceNotFound)
		r.whileLookedAfter(w, thingKind, func() { r.metrics.filled(w.name, 1) })
	}
	late()
	if len(w.dependencies.users) != 2 || len(w.reported) != 1 || testutil.CollectAndCount(r.metrics.fields) != 1 {
		t.Fatalf("want what is watched and reported to be recorded, got %v, %v", w.dependencies.users, w.reported)
	}
	wantObjects(t, r, map[string]float64{commonv1alpha1.ReasonSourceNotFound: 1})
	w.ignore()
	r.metrics.forgetCluster(w.name)
	late()
	wantObjects(t, r, nil)
	if len(w.dependencies.users)+len(w.dependencies.of)+len(w.reported) > 0 {
		t.Errorf("the class is disabled: want nothing to come back, got %v, %v", w.dependencies.users, w.reported)
	}

	// The cluster is gone: there is no instance of it.
	w.lookAfter([]*declared{{kind: thingKind}}, references.Tenancy{})
	r.workloads.Remove(w.name, w)
	late()
	wantObjects(t, r, nil)
	if n := testutil.CollectAndCount(r.metrics.fields); n > 0 {
		t.Errorf("want no series of a cluster that is gone, got %d", n)
	}
}

// wantObjects compares masthead_references_objects, by reason.
func wantObjects(t *testing.T, r *reconciler, want map[string]float64) {
	t.Helper()
	reg, got := prometheus.NewPedanticRegistry(), map[string]float64{}
	registerGauges(reg, r)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "masthead_references_objects" {
				labels := m.GetLabel() // They are sorted.
				got[labels[len(labels)-2].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("want the objects %v, got %v", want, got)
	}
}

// TestReplacedInstance: when an instance of a cluster is replaced, what was reported stays, so that alerts do not
// start over. What is gone by then is reconciled, and thus forgotten.
func TestReplacedInstance(t *testing.T) {
	r, before := idle(t)
	r.workloads.Add(t.Context(), before.name, before)
	before.noteReason(thing("a"), commonv1alpha1.ReasonSourceNotFound)
	replace := func() *workload {
		_, after := idle(t)
		after.ignore()
		r.workloads.Add(t.Context(), after.name, after)
		wantObjects(t, r, map[string]float64{commonv1alpha1.ReasonSourceNotFound: 1})
		return after
	}
	after := replace()
	before.noteReason(thing("b"), commonv1alpha1.ReasonSourceNotFound)
	wantObjects(t, r, map[string]float64{commonv1alpha1.ReasonSourceNotFound: 1})
	after.lookAfter([]*declared{{kind: thingKind}}, references.Tenancy{})
	if got := queued(after); len(got) > 0 {
		t.Errorf("The objects are not known yet: want none to be reconciled, got %v", got)
	}
	after.changed(kindwatch.Event{Type: kindwatch.StateChanged, Kind: thingKind, State: kindwatch.StateSynced})
	if got := queued(after); !slices.Equal(got, []string{"a"}) {
		t.Errorf("want what was reported to be reconciled, got %v", got)
	}

	after = replace()
	after.declared = nil // As in an instance that has not listed the definitions yet.
	if _, err := r.reconcileObject(t.Context(), after, thing("a")); err != nil {
		t.Fatal(err)
	}
	wantObjects(t, r, map[string]float64{commonv1alpha1.ReasonSourceNotFound: 1})
	after.lookAfter(nil, references.Tenancy{})
	if got := queued(after); !slices.Equal(got, []string{"a"}) {
		t.Errorf("The kind is not managed any more: want what was reported to be reconciled, got %v", got)
	}
	if _, err := r.reconcileObject(t.Context(), after, thing("a")); err != nil {
		t.Fatal(err)
	}
	wantObjects(t, r, nil)
}

// TestOldVersionComesLate: an object that is now managed in another version is not forgotten because of a late request
// with the old one.
func TestOldVersionComesLate(t *testing.T) {
	r, w := idle(t)
	r.workloads.Add(t.Context(), w.name, w)
	before, after := thing("a"), thing("a")
	after.Kind.Version = "v2"
	waits := func(req Request) {
		_, _ = w.depend(req, 0, []references.Source{sourceNamed("b")})
		w.noteReason(req, commonv1alpha1.ReasonSourceNotFound)
	}
	waits(before)
	w.lookAfter([]*declared{{kind: after.Kind}}, references.Tenancy{})
	waits(after)
	if _, err := r.reconcileObject(t.Context(), w, before); err != nil {
		t.Fatal(err)
	}
	if len(w.dependencies.users) != 1 || w.reported[keyOfRequest(after)] == "" {
		t.Errorf("want the object to wait still, got %v, %v", w.dependencies.users, w.reported)
	}
	wantObjects(t, r, map[string]float64{commonv1alpha1.ReasonSourceNotFound: 1})
	w.lookAfter(nil, references.Tenancy{})
	if _, err := r.reconcileObject(t.Context(), w, after); err != nil {
		t.Fatal(err)
	}
	if len(w.dependencies.users)+len(w.reported) > 0 {
		t.Errorf("want nothing to be left, got %v, %v", w.dependencies.users, w.reported)
	}
	wantObjects(t, r, nil)
}

// things serves Things: first the given number without references, then the given number with references.
func things(t *testing.T, without, with int) *rest.Config {
	t.Helper()
	return serves(t, func(w io.Writer) {
		_, _ = fmt.Fprint(w, `{"apiVersion":"example.org/v1","kind":"ThingList","metadata":{"resourceVersion":"1"},"items":[`)
		for i := range without + with {
			item, separator := `"spec":{"size":1}`, ","
			if i >= without {
				item = `"spec":{"references":[{"resource":"configmaps","name":"s","fromFieldPath":"data.a","toFieldPath":"spec.a"}]}`
			}
			if i == 0 {
				separator = ""
			}
			_, _ = fmt.Fprintf(w, `%s{"metadata":{"namespace":"team-a","name":"thing-%d","uid":"u%d","resourceVersion":"1"},%s}`, separator, i, i, item)
		}
		_, _ = fmt.Fprint(w, `]}`)
	})
}

// serves answers each list with what list writes, and lets watches hang.
func serves(t *testing.T, list func(io.Writer)) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := req.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			http.Error(w, "", http.StatusBadRequest)
		case query.Get("watch") != "":
			<-req.Context().Done()
		default:
			list(w)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// TestKindWithManyObjects: the number of objects of a kind does not end the resolution of the kind. In a workload
// cluster, whose owner is not trusted, the number of objects with references does.
func TestKindWithManyObjects(t *testing.T) {
	const many = kindwatch.DefaultObjectsPerKind + 1
	cases := map[string]struct {
		reason        string
		in            mcr.ClusterName
		without, with int
		want          kindwatch.State
	}{
		"HubWithout":      {reason: "What has no references is not kept.", in: hubName, without: many, with: 1, want: kindwatch.StateSynced},
		"HubWith":         {reason: "The hub's objects are its administrator's.", in: hubName, with: many, want: kindwatch.StateSynced},
		"WorkloadWithout": {reason: "What has no references is not kept.", in: workloadA, without: many, with: 1, want: kindwatch.StateSynced},
		"WorkloadWith":    {reason: "What is kept of a workload cluster is bounded.", in: workloadA, with: many, want: kindwatch.StateTooLarge},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, w := idleIn(t, things(t, tc.without, tc.with), tc.in)
			if tc.in == hubName {
				r.hub.Store(w)
			}
			startWatcher(t, w)
			if err := w.watcher.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, why := w.watcher.State(thingKind); got != tc.want {
				t.Errorf("%s Want the kind to be %s, got %s: %s", tc.reason, tc.want, got, why)
			}
			want := 0
			if tc.want == kindwatch.StateSynced {
				want = tc.with
			}
			if got := len(queued(w)); got != want {
				t.Errorf("want the %d objects with references to be looked at, got %d", want, got)
			}
			if got := w.states(); got[string(tc.want)] != 1 {
				t.Errorf("want the state to be published, got %v", got)
			}
		})
	}
}

// TestMoreKindsThanAreLookedAfter: the metric reports the kinds that are left out.
func TestMoreKindsThanAreLookedAfter(t *testing.T) {
	list := apiextensionsv1.CustomResourceDefinitionList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	for i := range maxKinds + 3 {
		crd, err := withReferences("Network", apiextensionsv1.NamespaceScoped)
		if err != nil {
			t.Fatal(err)
		}
		crd.UID, crd.ResourceVersion = types.UID(fmt.Sprint("u", i)), "1"
		crd.Spec.Names.Plural = fmt.Sprintf("networks%03d", i)
		crd.Spec.Names.Kind, crd.Name = fmt.Sprint("Network", i), crd.Spec.Names.Plural+"."+crd.Spec.Group
		list.Items = append(list.Items, *crd)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	_, w := idleIn(t, serves(t, func(out io.Writer) { _, _ = out.Write(data) }), hubName)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	w.definitions.Set(ownerDefinitions, definitionKind)
	go func() {
		defer close(ended)
		_ = w.definitions.Start(ctx)
	}()
	defer func() { cancel(); <-ended }()
	if err := w.definitions.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	defined, err := w.defined()
	kinds, leftOut, _ := chosen(defined)
	if err != nil || len(kinds) != maxKinds || leftOut != 3 || kinds[0].kind.Resource != "networks000" {
		t.Fatalf("want the first %d kinds by name, and 3 to be left out, got %d, %d, %v", maxKinds, len(kinds), leftOut, err)
	}
	w.lookAfter(defined, references.Tenancy{})
	if got := w.states(); got[stateLeftOut] != 3 || got[string(kindwatch.StateSyncing)] != maxKinds {
		t.Errorf("want what is left out to be published, got %v", got)
	}
}
