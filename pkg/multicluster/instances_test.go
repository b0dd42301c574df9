// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
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

	added, queued []string
	removed       chan mcr.ClusterName
}

func newInstancesFixture() *instancesFixture {
	f := &instancesFixture{removed: make(chan mcr.ClusterName, 8)}
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
		Queued:  func(i *followedInstance) { f.queued = append(f.queued, i.label) },
	})
	return f
}

// engage starts an instance, and returns its source and a function that ends it.
func (f *instancesFixture) engage(t *testing.T, name mcr.ClusterName, cl *engagedCluster) (crsource.TypedSource[mcreconcile.Request], context.CancelFunc) {
	t.Helper()
	source, wanted, err := f.ForCluster(name, cl)
	if err != nil || !wanted {
		t.Fatalf("want a source, got %t, %v", wanted, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := source.Start(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return source, cancel
}

func TestInstancesReplaceEachOther(t *testing.T) {
	f := newInstancesFixture()
	before, after := &engagedCluster{label: "before"}, &engagedCluster{label: "after"}
	source, endBefore := f.engage(t, "w1", before)
	one, _ := f.Get("w1")
	_, endAfter := f.engage(t, "w1", after)
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
	if syncing, _ := source.(crsource.TypedSyncingSource[mcreconcile.Request]); !errors.Is(syncing.WaitForSync(t.Context()), errNotSynced) {
		t.Error("Each source waits for its own instance.")
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
	if want := []string{"before", "after"}; !slices.Equal(f.queued, want) {
		t.Errorf("want %q, got %q", want, f.queued)
	}
}

func TestInstancesAreNotOfTheHub(t *testing.T) {
	f := newInstancesFixture()
	if _, wanted, err := f.ForCluster("", &engagedCluster{label: "hub"}); wanted || err != nil {
		t.Errorf("The hub is no workload cluster, got %t, %v", wanted, err)
	}
}

func TestInstanceThatCannotBeMade(t *testing.T) {
	f := newInstancesFixture()
	source, _, err := f.ForCluster("w1", &engagedCluster{})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Start(t.Context(), nil); !errors.Is(err, errNotSynced) {
		t.Errorf("want the error, got %v", err)
	}
	if syncing, _ := source.(crsource.TypedSyncingSource[mcreconcile.Request]); errors.Is(syncing.WaitForSync(t.Context()), errNotSynced) {
		t.Error("There is nothing to wait for.")
	}
	if len(f.All()) > 0 || len(f.added) > 0 {
		t.Errorf("want none, got %v", f.All())
	}
}
