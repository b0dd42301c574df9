// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

const (
	// offboardAttempts is how often a failing OffboardFunc is called, offboardRetry the time in between.
	offboardAttempts = 3
	offboardRetry    = time.Second

	// placePart of OffboardTimeout is how long a cluster that is offboarded keeps its place. A slower one goes on without:
	// it needs little, and others of its namespace wait for the place.
	placePart = 10
)

// offboarding drains clusters before they are disengaged, and offboards those that leave for good.
type offboarding struct {
	o       *Options
	marker  *hubMarker
	records *records
	life    *lifetime
	// places bound how many clusters begin to be offboarded at once: un-enrolling a class would list all its clusters.
	places *limits.Semaphore[string]

	mu    sync.RWMutex
	funcs []OffboardFunc
}

// add registers an OffboardFunc.
func (f *offboarding) add(fn OffboardFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.funcs = append(f.funcs, fn)
}

// start closes the gate before it returns. It waits for work in flight and offboards the cluster in the background, so
// that draining many clusters does not block all workers.
func (f *offboarding) start(r *record, logger logr.Logger) {
	f.o.Gate.Close(r.name)
	ctx, cancel := context.WithCancel(f.life.ctx)
	d := &drain{cancel: cancel}
	r.drain = d
	name, key, forGood := r.name, r.key, endsForGood(r.reason)
	conn, uid, fresh := r.conn, r.uid, r.leaving
	r.leaving = false
	f.life.running.Go(func() {
		_ = conn.Guard().Do("offboarding a cluster", func() {
			f.drain(ctx, name)
			if !forGood {
				return
			}
			leave := f.places.Wait(ctx, key.Namespace)
			if leave == nil {
				return
			}
			defer leave()
			if fresh {
				f.awaitSync(ctx, name, conn)
			}
			brief, done := context.WithTimeout(ctx, f.o.OffboardTimeout/placePart)
			defer done()
			context.AfterFunc(brief, leave)
			if !f.admit(ctx, conn, uid, logger) {
				return
			}
			f.offboard(ctx, name, logger)
			if why := f.marker.release(ctx, conn, conn.transport.Token()); why != nil {
				logger.Error(why, "Offboarded cluster without releasing it to other hubs")
			}
		})
		// However the drain ended, even by a panic, the cluster is disengaged.
		cancel()
		d.done.Store(true)
		f.records.wake(key)
	})
}

// drain waits for work in flight. The cluster is disengaged when that is done or the time is over.
func (f *offboarding) drain(ctx context.Context, name mcr.ClusterName) {
	ctx, cancel := context.WithTimeout(ctx, f.o.DrainTimeout)
	defer cancel()
	_ = f.o.Gate.WaitIdle(ctx, name)
}

// awaitSync waits until the controllers know a cluster that was just connected.
func (f *offboarding) awaitSync(ctx context.Context, name mcr.ClusterName, conn *connected) {
	ctx, cancel := context.WithTimeout(ctx, f.o.HandoverTimeout)
	defer cancel()
	_ = f.o.Gate.WaitForSync(ctx, name, conn) // Then they do what they can.
}

func (f *offboarding) cancel(r *record) {
	if r.drain != nil {
		r.drain.cancel()
		r.drain = nil
	}
}

// endsForGood reports whether a cluster is drained because its enrolment was ended or forbidden, rather than paused or
// missing something that may come back.
func endsForGood(reason string) bool {
	return reason == fleetv1alpha1.ReasonUnenrolled || reason == fleetv1alpha1.ReasonNamespaceNotAllowed || reason == fleetv1alpha1.ReasonClassFull
}

// offboard calls each OffboardFunc for a cluster that is still connected. It has its own time limit, since its work
// starts here, unlike that of a drain.
func (f *offboarding) offboard(ctx context.Context, name mcr.ClusterName, logger logr.Logger) {
	f.mu.RLock()
	funcs := f.funcs
	f.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, f.o.OffboardTimeout)
	defer cancel()
	ctx = log.IntoContext(ctx, logger)
	for _, offboard := range funcs {
		if err := persistently(ctx, offboard, name); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			logger.Error(err, "Offboarded cluster without cleaning up everything there")
		}
	}
}

// admit reports whether a cluster can be offboarded. One failed probe, after which writes fail at once, is no reason to
// leave finalizers behind: if the same cluster responds, writes are allowed again.
func (f *offboarding) admit(ctx context.Context, conn *connected, uid string, logger logr.Logger) bool {
	if ctx.Err() != nil || conn.transport.Mode() != transport.ReadOnly {
		return ctx.Err() == nil
	}
	got, why := conn.prober.Identity(ctx, conn.transport.Token())
	if why == nil && got != uid {
		why = condition.NewError(fleetv1alpha1.ReasonClusterIdentityChanged, "Another cluster answers at the same address")
	}
	if ctx.Err() != nil {
		return false
	}
	if why != nil {
		logger.Error(why, "Offboarded cluster without cleaning up anything there", "reason", why.Reason)
		return false
	}
	conn.transport.Allow(transport.Open)
	return true
}

// persistently calls an OffboardFunc until it succeeds, reaches its attempts, the cluster does not respond, or ctx
// ends. It returns the last error.
func persistently(ctx context.Context, offboard OffboardFunc, name mcr.ClusterName) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, wait.Backoff{Steps: offboardAttempts, Duration: offboardRetry}, func(ctx context.Context) (bool, error) {
		last = offboard(ctx, name)
		return !apierror.IsAnswer(last), nil
	})
	if last == nil {
		return err // It did not get its turn.
	}
	return last
}
