// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

const (
	// leaveAttempts is how often a Leaver is called that fails, leaveRetry how long it is left alone in between.
	leaveAttempts = 3
	leaveRetry    = time.Second
)

// farewell ends work in clusters that are to be disengaged, and takes leave of those that leave for good.
type farewell struct {
	o        *Options
	claimant *claimant
	records  *records
	life     *lifetime

	mu      sync.RWMutex
	leavers []Leaver
}

// add registers a Leaver.
func (f *farewell) add(fn Leaver) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leavers = append(f.leavers, fn)
}

// start closes the gate before it returns, then waits for work in flight, and takes leave, in the background: with
// many clusters to drain at once, workers would all wait.
func (f *farewell) start(r *record, logger logr.Logger) {
	f.o.Gate.Close(r.name)
	ctx, cancel := context.WithCancel(f.life.ctx) //nolint:gosec // cancel is called when the drain ends.
	d := &drain{cancel: cancel}
	r.drain = d
	name, key, forGood := r.name, r.key, leavesForGood(r.reason)
	conn, uid := r.conn, r.uid
	f.life.running.Go(func() {
		_ = conn.Guard().Do("leaving a cluster", func() {
			f.drain(ctx, name)
			if !forGood || !f.admit(ctx, conn, uid, logger) {
				return
			}
			f.leave(ctx, name, logger)
			if why := f.claimant.release(ctx, conn, conn.transport.Token()); why != nil {
				logger.Error(why, "Left a cluster without releasing it to other hubs")
			}
		})
		// However it ended, also by a panic, the drain is over and the cluster is disengaged.
		cancel()
		d.done.Store(true)
		f.records.wake(key)
	})
}

// drain waits for work in flight. Whether it is done or the time is over, the cluster is disengaged.
func (f *farewell) drain(ctx context.Context, name mcr.ClusterName) {
	ctx, cancel := context.WithTimeout(ctx, f.o.DrainTimeout)
	defer cancel()
	_ = f.o.Gate.WaitIdle(ctx, name)
}

func (f *farewell) cancel(r *record) {
	if r.drain != nil {
		r.drain.cancel()
		r.drain = nil
	}
}

// leavesForGood is whether a cluster is drained because somebody ended or forbade its enrolment, as opposed to a pause
// or something that is missing and may come back.
func leavesForGood(reason string) bool {
	return reason == ReasonUnenrolled || reason == ReasonNamespaceNotAllowed || reason == ReasonClassFull
}

// leave takes leave of a cluster that is still connected. It has a time limit of its own, since it is work that begins
// here, unlike what a drain waits for; and it delays nobody, as it has a goroutine of its own.
func (f *farewell) leave(ctx context.Context, name mcr.ClusterName, logger logr.Logger) {
	f.mu.RLock()
	leavers := f.leavers
	f.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, f.o.LeaveTimeout)
	defer cancel()
	ctx = log.IntoContext(ctx, logger)
	for _, leave := range leavers {
		if err := persistently(ctx, leave, name); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			logger.Error(err, "Left a cluster without undoing everything there")
		}
	}
}

// admit is whether leave can be taken of a cluster. One failed probe, after which writes fail at once, is no
// reason to leave finalizers behind, if the cluster answers and is still the same; then it can be written to.
func (f *farewell) admit(ctx context.Context, conn *connected, uid string, logger logr.Logger) bool {
	if ctx.Err() != nil || conn.transport.Mode() != transport.ReadOnly {
		return ctx.Err() == nil
	}
	got, why := conn.prober.Identity(ctx, conn.transport.Token())
	if why == nil && got != uid {
		why = reason.New(ReasonClusterIdentityChanged, "Another cluster answers at the same address")
	}
	if ctx.Err() != nil {
		return false
	}
	if why != nil {
		logger.Error(why, "Left a cluster without undoing anything there", "reason", why.Reason)
		return false
	}
	conn.transport.Allow(transport.Open)
	return true
}

// persistently calls a Leaver until it succeeds, has been called often enough, nobody answers, or ctx ends. It returns
// the last error.
func persistently(ctx context.Context, leave Leaver, name mcr.ClusterName) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, wait.Backoff{Steps: leaveAttempts, Duration: leaveRetry}, func(ctx context.Context) (bool, error) {
		last = leave(ctx, name)
		var answer apierrors.APIStatus
		return !errors.As(last, &answer), nil
	})
	if last == nil {
		return err // It did not get its turn.
	}
	return last
}
