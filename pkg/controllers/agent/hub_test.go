// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/test/fakefleet"
)

// idleHub is a hub without a watcher.
func idleHub() *hub {
	return newHub(&fakefleet.Fleet{},
		newWorkloads(workloadOptions{engaged: func(*workload) {}, disengaged: func(mcr.ClusterName) {}}),
		&enqueuer[Request]{}, &enqueuer[mcreconcile.Request]{})
}

// fakeHub is a hub whose API server is a fake that holds the objects.
func fakeHub(t *testing.T, handle func(*hub, kindwatch.Event), objs ...runtime.Object) *hub {
	t.Helper()
	h := idleHub()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		bar("").kind.GroupVersionResource(): "MySQLInstanceList",
	}, objs...)
	var err error
	h.watcher, err = kindwatch.New(kindwatch.Options{Client: client, Handler: func(e kindwatch.Event) { handle(h, e) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.watcher.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

func TestNothingIsPushedBeforeTheIndexOfOriginsIsComplete(t *testing.T) {
	us := source{"w1", "foo"}
	old := intentOf(parse(t, `{'metadata':{'name':'db'},'spec':{}}`), bar("db"), us, formClaim)
	old.SetNamespace("before")
	listed, goOn := make(chan struct{}), make(chan struct{})
	h := fakeHub(t, func(h *hub, e kindwatch.Event) {
		if e.Object != nil {
			close(listed)
			<-goOn
		}
		h.handle(e)
	}, old)
	kind := bar("").kind
	h.want("w1", kind)
	<-listed
	r := &requirementReconciler{hub: h}
	s := &scope{Request: Request{NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}, Kind: kind}, us: us, claim: parse(t, `{}`)}
	if _, o := r.look(s, bar("db")); o == nil || !o.silent {
		t.Errorf("want to wait while objects are known that are not in the index yet, got %v", o)
	}
	close(goOn)
	deadline := time.After(30 * time.Second)
	for {
		_, o := r.look(s, bar("db"))
		if o != nil && o.problem != nil && o.problem.reason == ReasonTargetNamespaceChanged {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("want %s, got %v", ReasonTargetNamespaceChanged, o)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestRefreshesAtOnceEndWithWhatIsThere(t *testing.T) {
	h := idleHub()
	watcher, err := kindwatch.New(kindwatch.Options{Client: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	h.watcher = watcher // One that is not started, and only keeps what it is asked for.
	w := newWorkload(workloadConnection{name: "w1", watcher: watcher})
	h.workloads.add(nil, w)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			kind := bar("").kind
			kind.Resource = fmt.Sprintf("r%d", i)
			for range 200 {
				w.follow(kind.Resource, followed{kind: kind, inHub: true})
				h.refreshFollowed(w)
				w.unfollow(kind.Resource)
				h.refreshFollowed(w)
			}
			if i%2 == 0 {
				w.follow(kind.Resource, followed{kind: kind, inHub: true})
				h.refreshFollowed(w)
			}
		})
	}
	running.Wait()
	if diff := cmp.Diff(sets.New(w.hubKinds()...), sets.New(h.watchedKinds()...)); diff != "" {
		t.Errorf("want the hub to watch what is followed (-want +got):\n%s", diff)
	}
}

func TestObservedObjectsAreInTheIndexOfOrigins(t *testing.T) {
	us := source{"w1", "foo"}
	h := fakeHub(t, func(h *hub, e kindwatch.Event) { h.handle(e) })
	kind := bar("").kind
	h.published["mysqlinstances.db.acmeco.org"] = publication{kind: kind}
	h.refreshOffered()
	if err := h.watcher.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	obj := intentOf(parse(t, `{'metadata':{'name':'db'},'spec':{}}`), bar("db"), us, formClaim)
	obj.SetResourceVersion("1000")
	h.observe(bar("db"), obj)
	o := origin{source: us, kind: kind, name: "db"}
	if diff := cmp.Diff([]hubKey{bar("db")}, h.placesOf(o), cmp.AllowUnexported(hubKey{})); diff != "" {
		t.Errorf("want what was written to be known (-want +got):\n%s", diff)
	}
	gone := obj.DeepCopy()
	gone.SetNamespace("gone")
	h.track(hubKey{kind: kind, NamespacedName: types.NamespacedName{Namespace: "gone", Name: "db"}}, kindwatch.Event{Type: kindwatch.Added, Kind: kind, Object: gone})
	if diff := cmp.Diff([]hubKey{bar("db")}, h.placesOf(o), cmp.AllowUnexported(hubKey{})); diff != "" {
		t.Errorf("want what the watch does not know to be no place (-want +got):\n%s", diff)
	}
}

func TestDeletionWithoutAClassWaitsAndWithoutATargetLeavesNothing(t *testing.T) {
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.synced("db", ReasonSynced)
	class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: f.class}}
	if err := f.hub.Delete(f.ctx, class); err != nil {
		t.Fatal(err)
	}
	f.synced("db", ReasonClassNotFound)
	w, ok := f.agent.workloads.get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.kindOf(f.crd().Name)
	// The watch has lost sight of it, or does not know it yet.
	f.agent.hub.handle(kindwatch.Event{Type: kindwatch.Deleted, Kind: kind, Object: f.pushed("db")})
	if err := f.workload.Delete(f.ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.settled()
	if hub, err := f.get(f.hub, f.target, "db"); err != nil || hub.GetDeletionTimestamp() != nil {
		t.Errorf("want nothing to be deleted while nobody knows what the class said about it, got %v (%v)", hub.Object, err)
	}

	f.create(f.hub, &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, DefaultTargetNamespace: "kube-system",
		}},
	})
	f.gone(f.workload, f.namespace, "db")
	if _, err := f.get(f.hub, f.target, "db"); !apierrors.IsNotFound(err) {
		t.Errorf("want nothing to be left in the hub when the claim is gone, got %v", err)
	}
}
