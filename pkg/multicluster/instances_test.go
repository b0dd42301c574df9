// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// engagedCluster is a cluster that receives no requests.
type engagedCluster struct {
	cluster.Cluster

	label string
}

// followedInstance is an instance that ends when its context does.
type followedInstance struct{ label string }

var errNotSynced = errors.New("not synced")

func (*followedInstance) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (*followedInstance) WaitForSync(context.Context) error { return errNotSynced }

// instancesFixture records what Instances reports.
type instancesFixture struct {
	*Instances[mcreconcile.Request, *followedInstance]

	added   []string
	queued  chan string
	removed chan mcr.ClusterName
}

func newInstancesFixture() *instancesFixture {
	f := &instancesFixture{queued: make(chan string, 8), removed: make(chan mcr.ClusterName, 8)}
	f.Instances = NewInstances(InstancesOptions[mcreconcile.Request, *followedInstance]{
		What: "things",
		New: func(_ mcr.ClusterName, cl cluster.Cluster, _ workqueue.TypedRateLimitingInterface[mcreconcile.Request]) (*followedInstance, error) {
			c, _ := cl.(*engagedCluster)
			if c.label == "" {
				return nil, errNotSynced
			}
			return &followedInstance{c.label}, nil
		},
		Added: func(name mcr.ClusterName, added, before *followedInstance, replaced bool) {
			note := string(name) + ": " + added.label
			if replaced {
				note += " for " + before.label
			}
			f.added = append(f.added, note)
		},
		Removed: func(name mcr.ClusterName) { f.removed <- name },
		Queued:  func(i *followedInstance) { f.queued <- i.label },
	})
	f.start(context.Background(), nil)
	return f
}

// engaged engages an instance, and returns a function that ends it.
func (f *instancesFixture) engaged(t *testing.T, name mcr.ClusterName, cl *engagedCluster) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f.engage(ctx, name, cl)
	if queued := <-f.queued; queued != cl.label {
		t.Errorf("want %q queued, got %q", cl.label, queued)
	}
	return cancel
}

func TestInstancesReplaceEachOther(t *testing.T) {
	f := newInstancesFixture()
	before, after := &engagedCluster{label: "before"}, &engagedCluster{label: "after"}
	endBefore := f.engaged(t, "w1", before)
	one, _ := f.Get("w1")
	endAfter := f.engaged(t, "w1", after)
	two, engaged := f.Get("w1")
	if !engaged || two.label != "after" || len(f.All()) != 1 {
		t.Fatalf("The one that was engaged last counts, got %v of %v", two, f.All())
	}
	called := 0
	f.IfCurrent("w1", one, func() { called++ })
	f.IfCurrent("w1", two, func() { called += 10 })
	if called != 10 {
		t.Errorf("want one call, for the current instance, got %d", called)
	}
	if err := f.WaitForSync(t.Context(), "w1", before); !errors.Is(err, errNotSynced) {
		t.Errorf("Each cluster's own instance is waited for, got %v", err)
	}
	endBefore()
	endAfter()
	if name := <-f.removed; name != "w1" {
		t.Errorf("got %q", name)
	}
	if _, engaged := f.Get("w1"); engaged || len(f.removed) > 0 {
		t.Error("The cluster is gone once, with its last instance.")
	}
	if want := []string{"w1: before", "w1: after for before"}; !slices.Equal(f.added, want) {
		t.Errorf("want %q, got %q", want, f.added)
	}
}

// TestOlderInstanceReplacesNoNewer: the instance of a connection that is being replaced can only be created once that
// of the newer connection is active. With the older connection the cluster would be left without one.
func TestOlderInstanceReplacesNoNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInstancesFixture()
		before, after := &engagedCluster{}, &engagedCluster{label: "after"}
		ctx, endBefore := context.WithCancel(t.Context())
		f.engage(ctx, "w1", before)
		synctest.Wait()
		f.engaged(t, "w1", after)
		before.label = "before"
		later, cancel := context.WithTimeout(t.Context(), 2*retryPeriod)
		defer cancel()
		<-later.Done()
		endBefore()
		synctest.Wait()
		if now, engaged := f.Get("w1"); !engaged || now.label != "after" {
			t.Errorf("want the newer instance, got %v", now)
		}
		if want := []string{"w1: after"}; !slices.Equal(f.added, want) {
			t.Errorf("want %q, got %q", want, f.added)
		}
	})
}

func TestInstancesAreNotOfTheHub(t *testing.T) {
	f, cl := newInstancesFixture(), &engagedCluster{label: "hub"}
	f.engage(t.Context(), "", cl)
	if err := f.WaitForSync(t.Context(), "", cl); !errors.Is(err, errNotEngaged) {
		t.Errorf("The hub is no workload cluster, got %v", err)
	}
}

func TestInstanceThatCannotBeMade(t *testing.T) {
	f, cl := newInstancesFixture(), &engagedCluster{}
	ctx, cancel := context.WithCancel(t.Context())
	f.engage(ctx, "w1", cl)
	cancel()
	if err := f.WaitForSync(t.Context(), "w1", cl); !errors.Is(err, errNotEngaged) {
		t.Errorf("There is nothing to wait for, got %v", err)
	}
	if len(f.All()) > 0 || len(f.added) > 0 {
		t.Errorf("want none, got %v", f.All())
	}
}

func TestInstancesRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeSource()
		s.failures.Store(2)
		s.start(t.Context(), nil)
		before := time.Now()
		cl := &fakeCluster{}
		s.engage(t.Context(), "x", cl)
		if err := s.WaitForSync(t.Context(), "x", cl); err != nil {
			t.Error(err)
		}
		if got := time.Since(before); got != 2*retryPeriod {
			t.Errorf("want an instance after two retries, got one after %v", got)
		}
	})
}
