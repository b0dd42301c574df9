// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// newController returns a controller of ours on a manager. It watches clusters, unless they are nil.
func newController(
	t *testing.T, m mcmanager.Manager, r recorder, watched Clusters[mcreconcile.Request],
	change ...func(*ControllerOptions[mcreconcile.Request]),
) *Controller[mcreconcile.Request] {
	t.Helper()
	o := ControllerOptions[mcreconcile.Request]{Reconciler: r, Clusters: watched, MaxConcurrentReconciles: 4}
	for _, f := range change {
		f(&o)
	}
	c, err := NewController("test", m, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newUpstreamController returns multicluster-runtime's controller on a manager.
func newUpstreamController(
	t *testing.T, m mcmanager.Manager, r recorder, src mcsource.TypedSource[client.Object, mcreconcile.Request], cacheSyncTimeout time.Duration,
) mccontroller.Controller {
	t.Helper()
	c, err := mccontroller.New("test", m, mccontroller.Options{
		Reconciler: r, SkipNameValidation: new(true), CacheSyncTimeout: cacheSyncTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MultiClusterWatch(src); err != nil {
		t.Fatal(err)
	}
	return c
}

// started waits until a controller runs, which a source of the hub shows.
func started(
	t *testing.T, c interface {
		Watch(src source.TypedSource[mcreconcile.Request]) error
	}, m mcmanager.Manager,
) <-chan error {
	t.Helper()
	events := make(chan event.TypedGenericEvent[int])
	got := make(chan struct{})
	src := source.TypedChannel(events, handler.TypedFuncs[int, mcreconcile.Request]{
		GenericFunc: func(context.Context, event.TypedGenericEvent[int], queue) { close(got) },
	})
	if err := c.Watch(src); err != nil {
		t.Fatal(err)
	}
	done := run(t, m)
	events <- event.TypedGenericEvent[int]{}
	<-got
	return done
}

func TestUpstreamEngageBlocksOnDeadCluster(t *testing.T) {
	engageBoth := func(t *testing.T, m mcmanager.Manager, entered func() bool) (dead, live chan error) {
		t.Helper()
		deadCluster, liveCluster := start(t, newCluster(t, blackHole(t))), start(t, newCluster(t, newFakeAPI(t).host))
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		dead, live = make(chan error, 1), make(chan error, 1)
		go func() { dead <- m.Engage(ctx, "dead", deadCluster) }()
		eventually(t, "the dead cluster is not being engaged", entered)
		go func() { live <- m.Engage(ctx, "live", liveCluster) }()
		return dead, live
	}

	t.Run("Upstream", func(t *testing.T) {
		m, r := newManager(t), newRecorder()
		c := newUpstreamController(t, m, r, mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, enqueueObject), time.Minute)
		started(t, c, m)
		dead, live := engageBoth(t, m, func() bool { return stacks("clusterKind[") > 0 })
		select {
		case err := <-dead:
			t.Errorf("the dead cluster is engaged (%v); is our controller needed?", err)
		case err := <-live:
			t.Errorf("the live cluster is engaged (%v); is our controller needed?", err)
		case <-r:
			t.Error("the live cluster is reconciled; is our controller needed?")
		case <-time.After(time.Second):
		}
	})
	t.Run("Ours", func(t *testing.T) {
		m, r := newManager(t), newRecorder()
		c := newController(t, m, r, watchKinds(configMaps))
		started(t, c, m)
		dead, live := engageBoth(t, m, func() bool { return stacks("kindwatch.(*Watcher).Start") > 0 })
		for _, engaged := range []chan error{dead, live} {
			if err := <-engaged; err != nil {
				t.Errorf("Engage: %v", err)
			}
		}
		r.await(t, configMap("live", "a"))
	})
}

func configMap(name mcr.ClusterName, object string) mcreconcile.Request {
	r := request(name, object)
	r.Namespace = "d"
	return r
}

func TestUpstreamDeadClusterEndsManager(t *testing.T) {
	t.Run("Upstream", func(t *testing.T) {
		m := newManager(t)
		newUpstreamController(t, m, newRecorder(), mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, enqueueObject), 200*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := m.Engage(ctx, "dead", start(t, newCluster(t, blackHole(t)))); err != nil {
			t.Fatal(err)
		}
		if err := <-run(t, m); err == nil || !strings.Contains(err.Error(), "timed out waiting for source") {
			t.Errorf("the manager ended with %v; is our controller needed?", err)
		}
	})
	t.Run("Ours", func(t *testing.T) {
		m, r := newManager(t, func(o *manager.Options) { o.Controller.CacheSyncTimeout = 200 * time.Millisecond }), newRecorder()
		watched := watchKinds(configMaps)
		newController(t, m, r, watched)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, name := range []mcr.ClusterName{"dead", "live"} {
			host := blackHole(t)
			if name == "live" {
				host = newFakeAPI(t).host
			}
			if err := m.Engage(ctx, name, start(t, newCluster(t, host))); err != nil {
				t.Fatal(err)
			}
		}
		done := run(t, m)
		r.await(t, configMap("live", "a"))
		select {
		case err := <-done:
			t.Errorf("the manager ended: %v", err)
		case <-time.After(400 * time.Millisecond): // By now it would have ended.
		}
		if err := watched.WaitForSync(t.Context(), "dead", nil); !errors.Is(err, errNotEngaged) {
			t.Errorf("an instance that was never engaged: want errNotEngaged, got %v", err)
		}
	})
}

func TestUpstreamMissingKindRefusesCluster(t *testing.T) {
	t.Run("Upstream", func(t *testing.T) {
		m := newManager(t)
		c := newUpstreamController(t, m, newRecorder(), mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.Pod{}, enqueueObject), time.Minute)
		started(t, c, m)
		if err := m.Engage(t.Context(), "x", start(t, newCluster(t, newFakeAPI(t).host))); err == nil {
			t.Error("a cluster that lacks a kind is engaged; is our source needed?")
		}
	})
	t.Run("Ours", func(t *testing.T) {
		m, r := newManager(t), newRecorder()
		src := watchKinds(pods, configMaps)
		c := newController(t, m, r, src)
		started(t, c, m)
		cl := start(t, newCluster(t, newFakeAPI(t).host))
		if err := m.Engage(t.Context(), "x", cl); err != nil {
			t.Errorf("Engage: %v", err)
		}
		r.await(t, configMap("x", "a"))
		if err := src.WaitForSync(t.Context(), "x", cl); err != nil {
			t.Errorf("a missing kind does not keep a cluster from being in sync: %v", err)
		}
		if got, _ := startedWatcher(t, src, "x").State(pods); got != kindwatch.StateNotServed {
			t.Errorf("the state of a kind that is missing: want %v, got %v", kindwatch.StateNotServed, got)
		}
	})
}

// stacks counts the goroutines in whose stack a text occurs.
func stacks(text string) int {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for s := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// baseLine records which goroutines run, once the workers of the only running controller have started.
func baseLine(t *testing.T) goleak.Option {
	t.Helper()
	eventually(t, "the workers do not start", func() bool { return stacks("(*fairQueue[...]).GetWithPriority") == 4*goroutinesPerWorker })
	return goleak.IgnoreCurrent()
}

// noLeak waits until no goroutines run except those of the base line.
func noLeak(t *testing.T, base goleak.Option) {
	t.Helper()
	var err error
	for range 20 { // Each call waits a while for goroutines that are about to end.
		if err = goleak.Find(base); err == nil {
			return
		}
	}
	t.Error(err)
}

func TestUpstreamGoroutineLeakPerEngagement(t *testing.T) {
	const rounds = 20
	flap := func(t *testing.T, m mcmanager.Manager, s *fakeSource) {
		t.Helper()
		for i := range rounds {
			ctx, cancel := context.WithCancel(t.Context())
			if err := m.Engage(ctx, "flapping", &fakeCluster{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the source is not started", func() bool { return len(s.started("flapping")) == i+1 })
			cancel()
		}
	}
	t.Run("Upstream", func(t *testing.T) {
		m, s := newManager(t), newFakeSource()
		c := newUpstreamController(t, m, newRecorder(), s, time.Minute)
		started(t, c, m)
		flap(t, m, s)
		if n := stacks("multicluster-runtime/pkg/controller"); n < rounds {
			t.Errorf("%d goroutines are left of %d engagements; is our controller needed?", n, rounds)
		}
	})
	t.Run("Ours", func(t *testing.T) {
		m, s := newManager(t), newFakeSource()
		c := newController(t, m, newRecorder(), s)
		started(t, c, m)
		base := baseLine(t)
		flap(t, m, s)
		noLeak(t, base)
		eventually(t, "an engagement is left", func() bool { return s.engagements() == 0 })
	})
}

func TestUpstreamNeedLeaderElectionIgnored(t *testing.T) {
	upstream, err := mccontroller.New("test", newManager(t), mccontroller.Options{
		Reconciler: newRecorder(), SkipNameValidation: new(true), NeedLeaderElection: new(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := upstream.(manager.LeaderElectionRunnable); ok {
		t.Error("multicluster-runtime's controller has NeedLeaderElection; is ours needed?")
	}

	for _, want := range []bool{true, false} {
		c := newController(t, newManager(t), newRecorder(), nil, func(o *ControllerOptions[mcreconcile.Request]) {
			o.NeedLeaderElection = &want
		})
		if got := c.NeedLeaderElection(); got != want {
			t.Errorf("NeedLeaderElection: want %v, got %v", want, got)
		}
	}
	if !newController(t, newManager(t), newRecorder(), nil).NeedLeaderElection() {
		t.Error("NeedLeaderElection is true by default")
	}
}

func TestUpstreamIgnoresManagerOptions(t *testing.T) {
	// The manager allows two controllers of one name.
	m := newManager(t)
	name := fmt.Sprintf("twice-%p", m) // The names are remembered for as long as the process lives.
	if _, err := mccontroller.New(name, m, mccontroller.Options{Reconciler: newRecorder()}); err != nil {
		t.Fatal(err)
	}
	if _, err := mccontroller.New(name, m, mccontroller.Options{Reconciler: newRecorder()}); err == nil {
		t.Error("multicluster-runtime's controller takes the manager's options; is ours needed?")
	}
	for range 2 {
		if _, err := NewController(name, m, ControllerOptions[mcreconcile.Request]{Reconciler: newRecorder()}); err != nil {
			t.Errorf("our controller does not take the manager's options: %v", err)
		}
	}
}

// lingering is a cluster whose Start, after its context has ended, returns only when leave is closed.
type lingering struct {
	cluster.Cluster
	leave chan struct{}
}

func (l *lingering) Start(ctx context.Context) error {
	err := l.Cluster.Start(ctx)
	<-l.leave
	return err
}

func TestUpstreamAddOrReplaceLosesCluster(t *testing.T) {
	// AddOrReplace replaces a cluster in multicluster-runtime's providers: the end of the old instance removes the new
	// one, unless it comes before the new one is added. The old one lingers, so that it never does.
	all := clusters.New[cluster.Cluster]()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old := &lingering{Cluster: newCluster(t, newFakeAPI(t).host), leave: make(chan struct{})}
	leave := sync.OnceFunc(func() { close(old.leave) })
	defer leave()
	if err := all.AddOrReplace(ctx, "x", old, nil); err != nil {
		t.Fatal(err)
	}
	if err := all.AddOrReplace(ctx, "x", newCluster(t, newFakeAPI(t).host), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Get(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	leave()
	eventually(t, "the replaced cluster is still there; is make-before-break needed?", func() bool {
		_, err := all.Get(ctx, "x")
		return errors.Is(err, mcr.ErrClusterNotFound)
	})
}

func TestUpstreamBreaksBeforeItMakes(t *testing.T) {
	replace := func(t *testing.T, m mcmanager.Manager, s *fakeSource) (first context.Context, endFirst context.CancelFunc) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		if err := m.Engage(ctx, "x", &fakeCluster{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first source is not started", func() bool { return len(s.started("x")) == 1 })
		if err := m.Engage(t.Context(), "x", &fakeCluster{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the second source is not started", func() bool { return len(s.started("x")) == 2 })
		return s.started("x")[0], cancel
	}
	t.Run("Upstream", func(t *testing.T) {
		m, s := newManager(t), newFakeSource()
		c := newUpstreamController(t, m, newRecorder(), s, time.Minute)
		started(t, c, m)
		if first, _ := replace(t, m, s); first.Err() == nil {
			t.Error("the old instance is still watched; is our controller needed?")
		}
	})
	t.Run("Ours", func(t *testing.T) {
		m, s := newManager(t), newFakeSource()
		c := newController(t, m, newRecorder(), s)
		started(t, c, m)
		first, endFirst := replace(t, m, s)
		if first.Err() != nil {
			t.Error("the old instance is not watched any more")
		}
		endFirst()
		<-first.Done()
		eventually(t, "the engagement of the old instance is left", func() bool { return s.engagements() == 1 })
		if s.started("x")[1].Err() != nil {
			t.Error("the end of the old instance ended the new one")
		}
	})
}

func TestControllerEngage(t *testing.T) {
	m, s := newManager(t), newFakeSource()
	c := newController(t, m, newRecorder(), s)
	ctx, cancel := context.WithCancel(t.Context())
	cl := &fakeCluster{}

	// Before the start; twice, the second time to no effect.
	for range 2 {
		if err := c.Engage(ctx, "x", cl); err != nil {
			t.Fatal(err)
		}
	}
	gone, end := context.WithCancel(t.Context())
	if err := c.Engage(gone, "gone-before-start", &fakeCluster{}); err != nil {
		t.Fatal(err)
	}
	end()
	eventually(t, "an engagement that ended before the start is left", func() bool { return s.engagements() == 1 })
	started(t, c, m)
	eventually(t, "the source is not started", func() bool { return len(s.started("x")) == 1 })
	if err := c.Engage(ctx, "x", cl); err != nil {
		t.Fatal(err)
	}

	if err := s.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Error(err)
	}
	if n := len(s.started("x")); n != 1 {
		t.Errorf("engaging the same instance again is a no-op: want 1 start, got %d", n)
	}

	cancel()
	if err := s.WaitForSync(t.Context(), "x", cl); !errors.Is(err, errNotEngaged) {
		t.Errorf("WaitForSync after the end: want errNotEngaged, got %v", err)
	}
	// The same instance under a new context is engaged again.
	if err := c.Engage(t.Context(), "x", cl); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the source is not started again", func() bool { return len(s.started("x")) == 2 })
	if n := len(s.started("gone-before-start")); n != 0 {
		t.Errorf("a cluster that went before the start was watched %d times", n)
	}
}

func TestGateWaitForSync(t *testing.T) {
	g, m := NewGate(), newManager(t)
	slow, quick := newFakeSource(), newFakeSource()
	slow.syncs = make(chan struct{})
	for _, s := range []*fakeSource{slow, quick} {
		newController(t, m, newRecorder(), s, func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	}
	run(t, m)
	cl := &fakeCluster{}
	if err := g.WaitForSync(t.Context(), "x", cl); !errors.Is(err, errNotEngaged) {
		t.Errorf("before Engage: want errNotEngaged, got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := m.Engage(ctx, "x", cl); err != nil {
		t.Fatal(err)
	}
	impatient, stop := context.WithCancelCause(t.Context())
	because := errors.New("because")
	stop(because)
	if err := g.WaitForSync(impatient, "x", cl); !errors.Is(err, because) {
		t.Errorf("with an ended context: want its cause, got %v", err)
	}
	close(slow.syncs)
	if err := g.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Errorf("WaitForSync: %v", err)
	}
}

// TestControllerWithoutClusters engages a controller that watches the hub only.
func TestControllerWithoutClusters(t *testing.T) {
	g := NewGate()
	c := newController(t, newManager(t), newRecorder(), nil, func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	cl := &fakeCluster{}
	if err := c.Engage(t.Context(), "x", cl); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Errorf("there is nothing to wait for: %v", err)
	}
}

func TestNewControllerErrors(t *testing.T) {
	if _, err := NewController("x", newManager(t), ControllerOptions[mcreconcile.Request]{}); err == nil {
		t.Error("without a reconciler: want an error")
	}
	if _, err := NewController("", newManager(t), ControllerOptions[mcreconcile.Request]{Reconciler: newRecorder()}); err == nil {
		t.Error("without a name: want an error")
	}
}

// TestControllerSurvivesManyEngagements engages and disengages clusters from many goroutines, for the race detector.
func TestControllerSurvivesManyEngagements(t *testing.T) {
	m, s := newManager(t), newFakeSource()
	c := newController(t, m, newRecorder(), s)
	started(t, c, m)
	base := baseLine(t)
	done := make(chan struct{})
	const parallel = 20
	for i := range parallel {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				cl := &fakeCluster{}
				if err := c.Engage(ctx, mcr.ClusterName(fmt.Sprint(i%7)), cl); err != nil {
					t.Error(err)
				}
				_ = s.WaitForSync(ctx, "0", cl)
				cancel()
			}
		}()
	}
	for range parallel {
		<-done
	}
	noLeak(t, base)
}

// queue is what sources and handlers fill.
type queue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]
