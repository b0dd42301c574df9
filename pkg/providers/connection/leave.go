// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
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

// OnLeave registers a Leaver. Call it before the Provider starts.
func (p *Provider) OnLeave(fn Leaver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leavers = append(p.leavers, fn)
}

// leavesForGood is whether a cluster is drained because somebody ended or forbade its enrolment, as opposed to a pause
// or something that is missing and may come back.
func leavesForGood(reason string) bool {
	return reason == ReasonUnenrolled || reason == ReasonNamespaceNotAllowed || reason == ReasonClassFull
}

// leave takes leave of a cluster that is still connected. It has a time limit of its own, since it is work that begins
// here, unlike what a drain waits for; and it delays nobody, as it has a goroutine of its own.
func (p *Provider) leave(ctx context.Context, name mcr.ClusterName, logger logr.Logger) {
	p.mu.RLock()
	leavers := p.leavers
	p.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, p.o.LeaveTimeout)
	defer cancel()
	ctx = log.IntoContext(ctx, logger)
	for _, leave := range leavers {
		if err := persistently(ctx, leave, name); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			logger.Error(err, "Left a cluster without undoing everything there")
		}
	}
}

// admitLeave is whether leave can be taken of a cluster. One failed probe, after which writes fail at once, is no
// reason to leave finalizers behind, if the cluster answers and is still the same; then it can be written to.
func (p *Provider) admitLeave(ctx context.Context, conn *connected, uid string, logger logr.Logger) bool {
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
