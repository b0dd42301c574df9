// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"
)

// missingKinds remembers what it is told.
type missingKinds struct {
	mu     sync.Mutex
	served map[string]bool
}

func newMissingKinds() *missingKinds { return &missingKinds{served: map[string]bool{}} }

func (m *missingKinds) tell(cluster mcr.ClusterName, kind schema.GroupKind, served bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[string(cluster)+"/"+kind.String()] = served
}

func (m *missingKinds) KindMissing(cluster mcr.ClusterName, kind schema.GroupKind) {
	m.tell(cluster, kind, false)
}
func (m *missingKinds) KindServed(cluster mcr.ClusterName, kind schema.GroupKind) {
	m.tell(cluster, kind, true)
}

func (m *missingKinds) await(t *testing.T, cluster mcr.ClusterName, kind string, served bool) {
	t.Helper()
	key := string(cluster) + "/" + kind
	eventually(t, "nobody says about "+key+" what is expected", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		got, ok := m.served[key]
		return ok && got == served
	})
}

// take gets one item from a queue, and tells its priority.
func take(t *testing.T, q priorityqueue.PriorityQueue[mcreconcile.Request]) (mcreconcile.Request, int) {
	t.Helper()
	eventually(t, "nothing is queued", func() bool { return q.Len() > 0 })
	item, priority, _ := q.GetWithPriority()
	q.Done(item)
	return item, priority
}

// startSource starts a source for one cluster, until the test ends.
func startSource(
	t *testing.T, src mcsource.TypedSource[client.Object, mcreconcile.Request], host string,
	q priorityqueue.PriorityQueue[mcreconcile.Request],
) {
	t.Helper()
	s, _, err := src.ForCluster("x", start(t, newCluster(t, host)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if err := s.Start(ctx, q); err != nil {
		t.Fatal(err)
	}
}

func TestUpstreamPrioritiesLost(t *testing.T) {
	cases := map[string]struct {
		source mcsource.TypedSource[client.Object, mcreconcile.Request]
		queue  priorityqueue.PriorityQueue[mcreconcile.Request]
		want   int
	}{
		"Upstream": {
			source: mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, enqueueObject),
			queue:  priorityqueue.New[mcreconcile.Request](""),
			want:   0,
		},
		"Ours": {
			source: LazyKind(&corev1.ConfigMap{}, enqueueObject),
			queue:  NewFairQueue("", FairQueueOptions[mcreconcile.Request]{}),
			want:   handler.LowPriority,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(tc.queue.ShutDown)
			api := newFakeAPI(t)
			startSource(t, tc.source, api.host, tc.queue)
			if item, got := take(t, tc.queue); got != tc.want {
				t.Errorf("priority of %v, which is in the initial list: want %d, got %d", item, tc.want, got)
			}
			api.add(t, "b")
			if item, got := take(t, tc.queue); got != 0 || item.Name != "b" {
				t.Errorf("priority of %v, which is new: want 0 for b, got %d", item, got)
			}
		})
	}
}

func TestUpstreamLogHasNoCluster(t *testing.T) {
	logged := func(t *testing.T, add func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler)) string {
		t.Helper()
		lines := make(chan string, 10)
		sink := funcr.New(func(_, args string) {
			if strings.Contains(args, `"hello"`) {
				lines <- args
			}
		}, funcr.Options{})
		m := newManager(t, func(o *manager.Options) { o.Logger = sink })
		add(t, m, mcreconcile.Func(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
			logf.FromContext(ctx).Info("hello")
			return reconcile.Result{}, nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := m.Engage(ctx, "x", start(t, newCluster(t, newFakeAPI(t).host))); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		return <-lines
	}
	upstream := logged(t, func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler) {
		t.Helper()
		err := mcbuilder.ControllerManagedBy(m).Named("test").
			For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(false), mcbuilder.WithEngageWithProviderClusters(true)).
			WithOptions(mccontroller.Options{SkipNameValidation: new(true)}).Complete(r)
		if err != nil {
			t.Fatal(err)
		}
	})
	if strings.Contains(upstream, `"x"`) || strings.Contains(upstream, `"name"="a"`) {
		t.Errorf("multicluster-runtime's line names the cluster or the object; is ours needed?\n%s", upstream)
	}
	ours := logged(t, func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler) {
		t.Helper()
		c, err := NewController("test", m, ControllerOptions[mcreconcile.Request]{Reconciler: r})
		if err != nil {
			t.Fatal(err)
		}
		watchWith(t, c, LazyKind(&corev1.ConfigMap{}, enqueueObject))
	})
	if want := `"cluster"="x" "namespace"="d" "name"="a"`; !strings.Contains(ours, want) {
		t.Errorf("want a line with %s, got %s", want, ours)
	}
}

func TestLazyKindPredicates(t *testing.T) {
	api := newFakeAPI(t)
	q := NewFairQueue("", FairQueueOptions[mcreconcile.Request]{})
	t.Cleanup(q.ShutDown)
	src := LazyKind(&corev1.ConfigMap{}, enqueueObject,
		WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() != "a" })),
		WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() != "b" })))
	startSource(t, src, api.host, q)
	for _, name := range []string{"b", "c"} {
		api.add(t, name)
	}
	if item, _ := take(t, q); item.Name != "c" {
		t.Errorf("want what both predicates let through, got %v", item)
	}
}

func TestLazyKindWithoutHandler(t *testing.T) {
	src := LazyKind(&corev1.ConfigMap{}, func(
		mcr.ClusterName, clusterOf,
	) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
		return nil
	})
	m := newManager(t)
	c := newController(t, m, newRecorder())
	watchWith(t, c, src)
	cl := newCluster(t, "http://127.0.0.1:0")
	if err := m.Engage(t.Context(), "x", cl); err != nil {
		t.Fatal(err)
	}
	run(t, m)
	if err := c.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Errorf("a cluster that is not to be watched is in sync: %v", err)
	}
}

func TestLazyKindUnknownType(t *testing.T) {
	type unknown struct{ corev1.ConfigMap }
	_, _, err := LazyKind(&unknown{}, enqueueObject).ForCluster("x", newCluster(t, "http://127.0.0.1:0"))
	if err == nil {
		t.Error("a type that the scheme does not know: want an error")
	}
}

func TestDefinitionsObserve(t *testing.T) {
	type change struct {
		name string
		gone bool
	}
	cases := map[string]struct {
		reason  string
		plural  string
		change  change
		changed bool
		gone    bool
	}{
		"Parked":        {reason: "Any of the group may be the one.", change: change{name: "things.x.example.org"}, changed: true},
		"ParkedGone":    {reason: "There is nothing to lose.", change: change{"things.x.example.org", true}, changed: true},
		"ParkedForeign": {reason: "Another group is not.", change: change{name: "things.example.org"}},
		"SubGroup":      {reason: "Nor is one whose name ends alike.", change: change{name: "things.a.x.example.org"}},
		"Followed":      {reason: "It may have got another version.", plural: "things", change: change{name: "things.x.example.org"}, changed: true},
		"FollowedGone": {
			reason: "It is gone.", plural: "things", change: change{"things.x.example.org", true}, changed: true, gone: true,
		},
		"Sibling": {reason: "Another kind of the group does not matter.", plural: "things", change: change{"others.x.example.org", true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDefinitions("x.example.org")
			d.follow(tc.plural)
			obj := definitionObject()
			obj.SetName(tc.change.name)
			d.observe(obj, tc.change.gone)
			got := map[string]bool{"changed": len(d.changed) == 1, "gone": d.takeGone(), "again": d.takeGone()}
			want := map[string]bool{"changed": tc.changed, "gone": tc.gone, "again": false}
			if !maps.Equal(want, got) {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, cmp.Diff(want, got))
			}
		})
	}
}

func TestLazyKindRecoversFromUnreachableCluster(t *testing.T) {
	// The server comes up after the source was started.
	m, r := newManager(t), newRecorder()
	c := newController(t, m, r)
	watchWith(t, c, LazyKind(&corev1.ConfigMap{}, enqueueObject, WithRetry(time.Millisecond, 10*time.Millisecond)))
	started(t, c, m)
	api := newFakeAPI(t)
	up := make(chan struct{})
	host := proxy(t, api.host, up)
	cl := start(t, newCluster(t, host))
	if err := m.Engage(t.Context(), "x", cl); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.WaitForSync(impatient, "x", cl); err == nil {
		t.Error("a cluster that does not answer is in sync")
	}
	close(up)
	r.await(t, configMap("x", "a"))
	if err := c.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Error(err)
	}
}
