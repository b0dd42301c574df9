// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// widgetRequest makes a request for a widget.
func widgetRequest(cluster mcr.ClusterName, name string) mcreconcile.Request {
	r := request(cluster, name)
	r.Namespace = metav1.NamespaceDefault
	return r
}

// TestLazyKindFollowsDefinition has the definition of a kind come, go and come back while a cluster is engaged.
func TestLazyKindFollowsDefinition(t *testing.T) {
	cases := map[string]func(f *fixture) client.Object{
		"typed":        func(*fixture) client.Object { return &widget{} },
		"unstructured": func(f *fixture) client.Object { return f.object("") },
		"metadata": func(f *fixture) client.Object {
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(f.gvk)
			return o
		},
	}
	for name, object := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, name)
			m, r, missing := newManager(t), newRecorder(), newMissingKinds()
			c := newController(t, m, r)
			// The slow retry is off, so that it is the definition that wakes the source.
			watchWith(t, c, LazyKind(object(f), enqueueObject, WithMissingKinds(missing), WithRetry(10*time.Millisecond, time.Hour)))
			started(t, c, m)
			cl := start(t, f.newCluster(f.cfg))
			if err := m.Engage(t.Context(), "x", cl); err != nil {
				t.Fatal(err)
			}
			kind := f.gvk.GroupKind().String()
			missing.await(t, "x", kind, false)
			if err := c.WaitForSync(t.Context(), "x", cl); err != nil {
				t.Errorf("a missing kind is in sync: %v", err)
			}

			for round := range 3 {
				f.define()
				missing.await(t, "x", kind, true)
				first, second := fmt.Sprintf("first-%d", round), fmt.Sprintf("second-%d", round)
				f.create(first)
				r.await(t, widgetRequest("x", first))
				f.create(second)
				r.await(t, widgetRequest("x", second))
				if err := f.client.Delete(t.Context(), f.object(first)); err != nil {
					t.Fatal(err)
				}
				r.await(t, widgetRequest("x", first))

				f.undefine()
				missing.await(t, "x", kind, false)
				r.await(t, widgetRequest("x", second)) // It is gone with its kind.
				read, ok := object(f).DeepCopyObject().(client.Object)
				if !ok {
					t.Fatal("a copy is not an object")
				}
				err := cl.GetCache().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: second}, read)
				var notCached *cache.ErrResourceNotCached
				if !errors.As(err, &notCached) {
					t.Errorf("the informer of a kind that is gone is left in the cache: want ErrResourceNotCached, got %v", err)
				}
			}
		})
	}
}

// TestLazyKindSharesInformer has two controllers watch one kind: when its definition is replaced, both go on.
func TestLazyKindSharesInformer(t *testing.T) {
	f := newFixture(t, "shared")
	f.define()
	m := newManager(t)
	recorders := []recorder{newRecorder(), newRecorder(), newRecorder()}
	for _, r := range recorders {
		// The slow retry is short here: should one of the sources have stopped another's informer, that one finds out.
		watchWith(t, newController(t, m, r), LazyKind(f.object(""), enqueueObject,
			WithRetry(5*time.Millisecond, 500*time.Millisecond)))
	}
	run(t, m)
	if err := m.Engage(t.Context(), "x", start(t, f.newCluster(f.cfg))); err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		name := fmt.Sprint("round-", round)
		f.create(name)
		for _, r := range recorders {
			r.await(t, widgetRequest("x", name))
		}
		f.undefine()
		f.define()
	}
}

// TestLazyKindWithoutRightsToDefinitions engages a cluster whose definitions may not be watched.
func TestLazyKindWithoutRightsToDefinitions(t *testing.T) {
	f := newFixture(t, "restricted")
	const user = "restricted"
	restricted, err := shared.env.AddUser(envtest.User{Name: user}, f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{f.gvk.Group}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := client.IgnoreAlreadyExists(f.client.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}

	m, r, missing := newManager(t), newRecorder(), newMissingKinds()
	c := newController(t, m, r)
	watchWith(t, c, LazyKind(f.object(""), enqueueObject, WithMissingKinds(missing), WithRetry(10*time.Millisecond, 200*time.Millisecond)))
	started(t, c, m)
	if err := m.Engage(t.Context(), "x", start(t, f.newCluster(restricted.Config()))); err != nil {
		t.Fatal(err)
	}
	kind := f.gvk.GroupKind().String()
	for round := range 2 {
		missing.await(t, "x", kind, false)
		f.define()
		missing.await(t, "x", kind, true)
		name := fmt.Sprint("round-", round)
		f.create(name)
		r.await(t, widgetRequest("x", name))
		f.undefine()
	}
	missing.await(t, "x", kind, false)
}

func TestLazyKindInitialListHasLowPriority(t *testing.T) {
	f := newFixture(t, "priority")
	f.define()
	const objects = 5
	for i := range objects {
		f.create(fmt.Sprint("old-", i))
	}
	q := NewFairQueue("", FairQueueOptions[mcreconcile.Request]{})
	t.Cleanup(q.ShutDown)
	src, _, err := LazyKind(f.object(""), enqueueObject).ForCluster("x", start(t, f.newCluster(f.cfg)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := src.Start(ctx, q); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the initial list does not come", func() bool { return q.Len() == objects })
	f.create("new")
	eventually(t, "the new object does not come", func() bool { return q.Len() == objects+1 })
	if item, priority := take(t, q); item.Name != "new" || priority != 0 {
		t.Errorf("want the new object first, with priority 0, got %v with %d", item, priority)
	}
	for range objects {
		if item, priority := take(t, q); priority != handler.LowPriority {
			t.Errorf("%v, which is in the initial list, has priority %d", item, priority)
		}
	}
}

// TestEngagementsLeaveNothingBehind engages and disengages real clusters, with kinds that are and are not served.
func TestEngagementsLeaveNothingBehind(t *testing.T) {
	f := newFixture(t, "rounds")
	f.define()
	f.create("object")
	g := NewGate()
	m, r := newManager(t), newRecorder()
	c := newController(t, m, r, func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	missingKind := f.object("")
	missingKind.SetKind("Gadget")
	watchWith(t, c, LazyKind(f.object(""), enqueueObject), LazyKind(missingKind, enqueueObject),
		LazyKind(&corev1.Namespace{}, enqueueObject))
	started(t, c, m)
	base := baseLine(t)

	for range 20 {
		cl := f.newCluster(f.cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cl.Start(ctx) }()
		g.Open("x")
		if err := m.Engage(ctx, "x", cl); err != nil {
			t.Fatal(err)
		}
		r.await(t, widgetRequest("x", "object"))
		if err := c.WaitForSync(ctx, "x", cl); err != nil {
			t.Error(err)
		}
		cancel()
		g.Forget("x")
		if err := <-done; err != nil {
			t.Error(err)
		}
		cl.GetHTTPClient().CloseIdleConnections()
	}
	noLeak(t, base)
}

// TestControllerMakesBeforeItBreaks replaces the instance of a cluster again and again while objects are created: none of
// them is missed.
func TestControllerMakesBeforeItBreaks(t *testing.T) {
	f := newFixture(t, "replaced")
	f.define()
	g := NewGate()
	g.Open("x")
	m, r := newManager(t), newRecorder()
	c := newController(t, m, r, func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	watchWith(t, c, LazyKind(f.object(""), enqueueObject))
	started(t, c, m)

	end := func() {}
	for round := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		cl := f.newCluster(f.cfg)
		go func() { _ = cl.Start(ctx) }()
		if err := m.Engage(ctx, "x", cl); err != nil {
			t.Fatal(err)
		}
		before, between, after := fmt.Sprint("before-", round), fmt.Sprint("between-", round), fmt.Sprint("after-", round)
		f.create(before)
		if err := g.WaitForSync(t.Context(), "x", cl); err != nil {
			t.Fatal(err)
		}
		f.create(between)
		end()
		f.create(after)
		want := map[string]bool{before: true, between: true, after: true}
		eventually(t, "an object was missed", func() bool {
			for {
				select {
				case got := <-r:
					delete(want, got.Name)
				default:
					return len(want) == 0
				}
			}
		})
		end = cancel
	}
	end()
}
