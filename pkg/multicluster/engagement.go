// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"
)

// engagement is one instance of a cluster that a controller watches.
type engagement[R mcreconcile.ClusterAware[R]] struct {
	name    mcr.ClusterName
	cluster cluster.Cluster
	runs    []*sourceRun[R]
	// ctx ends with the context of Engage, or with the controller.
	ctx    context.Context //nolint:containedctx // It is what an engagement is.
	cancel context.CancelFunc
	// unbind stops the end of the controller from ending ctx.
	unbind func() bool
}

// sourceRun is one source that watches one instance of a cluster.
type sourceRun[R mcreconcile.ClusterAware[R]] struct {
	source source.TypedSource[R]
	// synced is closed when the source has delivered its initial list.
	synced chan struct{}
}

// newSourceRun returns nil if the source is not for that cluster.
func newSourceRun[R mcreconcile.ClusterAware[R]](
	src mcsource.TypedSource[client.Object, R], name mcr.ClusterName, cl cluster.Cluster,
) (*sourceRun[R], error) {
	s, engage, err := src.ForCluster(name, cl)
	if err != nil {
		return nil, fmt.Errorf("cannot create a source for cluster %q: %w", name, err)
	}
	if !engage {
		return nil, nil
	}
	return &sourceRun[R]{source: s, synced: make(chan struct{})}, nil
}

// startSources is called by the inner controller to start its sources.
func (c *Controller[R]) startSources(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.queue = ctx, q
	for _, engagements := range c.engagements {
		for _, e := range engagements {
			c.start(e)
		}
	}
	return nil
}

// start runs the sources of an engagement. The caller holds the lock.
func (c *Controller[R]) start(e *engagement[R]) {
	e.unbind = context.AfterFunc(c.ctx, e.cancel)
	for _, run := range e.runs {
		go c.run(e, run)
	}
}

// disengage removes an engagement whose context has ended.
func (c *Controller[R]) disengage(e *engagement[R]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.cancel()
	if e.unbind != nil {
		e.unbind()
	}
	left := slices.DeleteFunc(c.engagements[e.name], func(other *engagement[R]) bool { return other == e })
	if len(left) == 0 {
		delete(c.engagements, e.name)
		return
	}
	c.engagements[e.name] = left
}

// run starts a source, with retries, and returns when it has synced or the engagement has ended.
func (c *Controller[R]) run(e *engagement[R], run *sourceRun[R]) {
	guarded := GetGuard(e.cluster)
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 6, Cap: time.Minute}
	for {
		err := guarded.Run("starting a source", func() error { return run.source.Start(e.ctx, c.queue) })
		if err == nil {
			break
		}
		if e.ctx.Err() == nil {
			c.GetLogger().Error(err, "Cannot start a source, it will be retried", "cluster", displayName(e.name),
				"source", fmt.Sprintf("%v", run.source))
		}
		if !sleep(e.ctx, c.clock, backoff.Step()) {
			return
		}
	}
	if s, ok := run.source.(source.TypedSyncingSource[R]); ok &&
		guarded.Run("waiting for a source", func() error { return s.WaitForSync(e.ctx) }) != nil {
		return
	}
	close(run.synced)
}

// sleep returns false if ctx ended before d had passed.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) bool {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}
