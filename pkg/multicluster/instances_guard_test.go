// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
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
		return NewInstances(InstancesOptions[mcreconcile.Request, *panickingInstance]{
			What: "things",
			New: func(mcr.ClusterName, cluster.Cluster, workqueue.TypedRateLimitingInterface[mcreconcile.Request]) (*panickingInstance, error) {
				return &panickingInstance{}, nil
			},
			Added:   func(mcr.ClusterName, *panickingInstance, *panickingInstance, bool) {},
			Removed: func(name mcr.ClusterName) { removed <- name },
		})
	}
	cases := map[string]struct {
		reason, task string
		do           func(t *testing.T, cl *guardedCluster)
	}{
		"Reconcile": {
			reason: "A reconcile that panics is an error.", task: "reconciling",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				c := &Controller[mcreconcile.Request]{engagements: map[mcr.ClusterName][]*engagement[mcreconcile.Request]{
					"x": {{name: "x", cluster: cl}},
				}}
				r := &clusterReconciler[mcreconcile.Request]{guardFor: c.clusterGuard, wrapped: mcreconcile.Func(
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
				src, _, err := newInstances(removed).ForCluster("x", cl)
				if err != nil {
					t.Fatal(err)
				}
				if err := src.Start(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				<-removed
			},
		},
		"Source": {
			reason: "A source that panics is not synced, and ends with the connection.", task: "starting a source",
			do: func(t *testing.T, cl *guardedCluster) { //nolint:thelper // It is the case itself.
				ctx, cancel := context.WithCancel(t.Context())
				run := &sourceRun[mcreconcile.Request]{synced: make(chan struct{}), source: crsource.TypedFunc[mcreconcile.Request](
					func(context.Context, workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
						cancel() // As the connection does.
						panic("of a test")
					})}
				c := &Controller[mcreconcile.Request]{clock: clock.RealClock{}}
				c.run(&engagement[mcreconcile.Request]{name: "x", cluster: cl, ctx: ctx, cancel: cancel}, run)
				select {
				case <-run.synced:
					t.Error("A source that panicked is not synced.")
				default:
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
