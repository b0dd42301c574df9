// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// retryPeriod is the time between attempts to create an instance.
const retryPeriod = 10 * time.Second

// engagement is one instance of a cluster that a controller watches.
type engagement[I Instance] struct {
	name mcr.ClusterName
	// ctx ends with the context of Engage, with the controller, or with the instance.
	ctx    context.Context //nolint:containedctx // It is what an engagement is.
	cancel context.CancelFunc
	// created is closed when the instance is set.
	created  chan struct{}
	instance I
}

func (e *engagement[I]) isCreated() bool {
	select {
	case <-e.created:
		return true
	default:
		return false
	}
}

// start implements Clusters.
func (s *Instances[R, I]) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) {
	s.ctx, s.queue = ctx, queue
	close(s.started)
}

// engage implements Clusters.
func (s *Instances[R, I]) engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == hub || ctx.Err() != nil || s.live(cl) != nil {
		return
	}
	for _, older := range s.byCluster {
		if older.name == name && !older.isCreated() {
			older.cancel() // Its instance would replace that of the newer connection.
		}
	}
	e := &engagement[I]{name: name, created: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(ctx)
	s.byCluster[cl] = e
	go func() {
		defer s.disengage(cl, e)
		_ = GetGuard(cl).Run("following a cluster", func() error { return s.follow(e, cl) })
	}()
}

// live returns the engagement of a cluster until its context ends, or nil. The caller holds the lock.
func (s *Instances[R, I]) live(cl cluster.Cluster) *engagement[I] {
	if e := s.byCluster[cl]; e != nil && e.ctx.Err() == nil {
		return e
	}
	return nil
}

// follow creates an instance once the controller has started, and runs it.
func (s *Instances[R, I]) follow(e *engagement[I], cl cluster.Cluster) error {
	select {
	case <-s.started:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	defer context.AfterFunc(s.ctx, e.cancel)()
	i, err := s.create(e, cl)
	if err != nil || !s.Add(e.ctx, e.name, i) {
		return err
	}
	defer s.Remove(e.name, i)
	e.instance = i
	close(e.created)
	if s.o.Queued != nil {
		s.o.Queued(i)
	}
	return i.Start(e.ctx)
}

// create creates the instance of an engagement, and retries what fails.
func (s *Instances[R, I]) create(e *engagement[I], cl cluster.Cluster) (i I, err error) {
	retry := clock.RealClock{}.NewTicker(retryPeriod)
	defer retry.Stop()
	for {
		if i, err = s.o.New(e.name, cl, s.queue); err == nil {
			return i, nil
		}
		log := logf.FromContext(s.ctx).WithValues("cluster", displayName(e.name), "source", s.o.What)
		log.Error(err, "Cannot watch a cluster, it will be retried")
		select {
		case <-retry.C():
		case <-e.ctx.Done():
			return i, e.ctx.Err()
		}
	}
}

func (s *Instances[R, I]) disengage(cl cluster.Cluster, e *engagement[I]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.cancel()
	if s.byCluster[cl] == e {
		delete(s.byCluster, cl)
	}
}

// WaitForSync implements SyncWaiter.
func (s *Instances[R, I]) WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	s.mu.Lock()
	e := s.live(cl)
	s.mu.Unlock()
	if e == nil {
		return fmt.Errorf("cannot wait for the watches on cluster %q: %w", name, errNotEngaged)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(errNotEngaged) })() //nolint:contextcheck // It is the end of e.ctx that is waited for.
	err := GetGuard(cl).Run("waiting for a cluster", func() error {
		select {
		case <-e.created:
			return e.instance.WaitForSync(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return fmt.Errorf("cannot wait for the watches on cluster %q: %w", name, cmp.Or(context.Cause(ctx), err))
	}
	return nil
}
