// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// guardedCluster is a cluster whose connection has a guard.
type guardedCluster struct {
	cluster.Cluster
	guard *guard.Guard
}

func (c *guardedCluster) Guard() *guard.Guard { return c.guard }

func newGuardedCluster() (*guardedCluster, <-chan *guard.Panic) {
	reported := make(chan *guard.Panic, 8)
	return &guardedCluster{guard: guard.New(func(p *guard.Panic) { reported <- p })}, reported
}

// panickingInstance panics when it is started.
type panickingInstance struct{ _ int }

func (*panickingInstance) Start(context.Context) error       { panic("of a test") }
func (*panickingInstance) WaitForSync(context.Context) error { panic("of a test") }

// TestPanicReachesTheConnection makes the code panic with which a controller handles a cluster.
func TestPanicReachesTheConnection(t *testing.T) {
	newInstances := func(removed chan mcr.ClusterName) *Instances[mcreconcile.Request, *panickingInstance] {
		s := NewInstances(InstancesOptions[mcreconcile.Request, *panickingInstance]{
			What: "things",
			New: func(mcr.ClusterName, cluster.Cluster, workqueue.TypedRateLimitingInterface[mcreconcile.Request]) (*panickingInstance, error) {
				return &panickingInstance{}, nil
			},
			Removed: func(name mcr.ClusterName) { removed <- name },
		})
		s.start(t.Context(), nil)
		return s
	}
	cases := map[string]struct {
		reason, task string
		do           func(t *testing.T, cl *guardedCluster)
	}{
		"Reconcile": {
			reason: "A reconcile that panics is an error.", task: "reconciling",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				get := func(context.Context, mcr.ClusterName) (cluster.Cluster, error) { return cl, nil }
				r := &clusterReconciler[mcreconcile.Request]{getCluster: get, wrapped: mcreconcile.Func(
					func(context.Context, mcreconcile.Request) (reconcile.Result, error) { panic("of a test") })}
				_, err := r.Reconcile(t.Context(), request("x", "1"))
				if _, ok := errors.AsType[*guard.Panic](err); !ok {
					t.Errorf("A reconcile that panicked has failed. Got error %v.", err)
				}
			},
		},
		"Instance": {
			reason: "An instance that panics is removed.", task: "following a cluster",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				removed := make(chan mcr.ClusterName, 1)
				newInstances(removed).engage(t.Context(), "x", cl)
				<-removed
			},
		},
		"New": {
			reason: "An instance whose creation panics is not synced.", task: "following a cluster",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				instances := newInstances(nil)
				instances.o.New = func(mcr.ClusterName, cluster.Cluster, queue) (*panickingInstance, error) { panic("of a test") }
				instances.engage(t.Context(), "x", cl)
				if err := instances.WaitForSync(t.Context(), "x", cl); !errors.Is(err, errNotEngaged) {
					t.Errorf("An instance whose creation panicked is not synced. Got %v.", err)
				}
			},
		},
		"WaitForSync": {
			reason: "An instance that panics while it is waited for is not synced.", task: "waiting for a cluster",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				instances, created := newInstances(nil), make(chan struct{})
				close(created)
				instances.byCluster[cl] = &engagement[*panickingInstance]{ctx: t.Context(), created: created, instance: &panickingInstance{}}
				if _, ok := errors.AsType[*guard.Panic](instances.WaitForSync(t.Context(), "x", cl)); !ok {
					t.Error("An instance that panicked is not synced.")
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cl, reported := newGuardedCluster()
			tc.do(t, cl)
			if p := <-reported; p.Task != tc.task {
				t.Errorf("%s Got %v.", tc.reason, p)
			}
		})
	}
}
