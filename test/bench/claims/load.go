// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

const (
	// writers is the number of requests in flight when claims are created, or statuses written, as fast as possible.
	writers = 8

	// patience is the timeout of a phase. kube-bind as shipped needs a minute for 300 claims.
	patience = 6 * time.Minute
)

// Load creates claims of one kind and follows them.
type Load struct {
	kind      Kind
	hub       *apiserver.Client
	workloads []*apiserver.Client
	tracker   *tracker
	ended     chan error
}

// NewLoad begins to watch. The kind must be served everywhere.
func NewLoad(ctx context.Context, k Kind, hub *apiserver.Client, workloads []*apiserver.Client) (*Load, error) {
	l := &Load{kind: k, hub: hub, workloads: workloads, tracker: newTracker(), ended: make(chan error, len(workloads)+1)}
	if err := apiserver.Watch(ctx, hub, k.Collection(""), func(o object) { l.tracker.inHub(o, time.Now()) }, l.ended); err != nil {
		return nil, err
	}
	for _, w := range workloads {
		if err := apiserver.Watch(ctx, w, k.Collection(""), func(o object) { l.tracker.inWorkload(o, time.Now()) }, l.ended); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// create creates one claim. The workload clusters take turns.
func (l *Load) create(ctx context.Context, prefix string, i int) error {
	w := l.workloads[i%len(l.workloads)]
	name := fmt.Sprintf("%s-%s-%d", prefix, w.Cluster, i)
	body := l.kind.Claim(name)
	l.tracker.create(name, w, time.Now())
	return w.Do(ctx, http.MethodPost, l.kind.Collection(Namespace), apiserver.TypeJSON, body)
}

// write writes the status of one claim in the hub.
func (l *Load) write(ctx context.Context, name, in string) error {
	l.tracker.write(name, time.Now())
	return l.hub.Do(ctx, http.MethodPatch, l.kind.Collection(in)+"/"+name+"/status", apiserver.TypeMerge, Status())
}

// CreateAll creates claims as fast as the writers can.
func (l *Load) CreateAll(ctx context.Context, prefix string, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return l.create(ctx, prefix, i) })
	}
	return group.Wait()
}

// WriteAll writes the status of all claims as fast as the writers can.
func (l *Load) WriteAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for name, s := range l.tracker.each() {
		if s.written.IsZero() {
			group.Go(func() error { return l.write(ctx, name, s.namespace) })
		}
	}
	return group.Wait()
}

// Pace creates claims at a rate, and writes the status of each as soon as it is in the hub.
func (l *Load) Pace(ctx context.Context, prefix string, rate int, d time.Duration) error {
	var group errgroup.Group
	l.tracker.mu.Lock()
	l.tracker.onArrival = func(name, in string) { group.Go(func() error { return l.write(ctx, name, in) }) }
	l.tracker.mu.Unlock()
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	n := int(d.Seconds() * float64(rate))
	for i := range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		group.Go(func() error { return l.create(ctx, prefix, i) })
	}
	if err := l.Wait(ctx, func(_, returned int) bool { return returned >= n }); err != nil {
		return err
	}
	return group.Wait()
}

// Wait waits until enough accepts how many claims have arrived in the hub, and how many statuses have returned.
func (l *Load) Wait(ctx context.Context, enough func(arrived, returned int) bool) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		arrived, returned := l.tracker.counts()
		if enough(arrived, returned) {
			return nil
		}
		select {
		case <-l.tracker.changed:
		case err := <-l.ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return errors.Join(ErrSlow, fmt.Errorf("after %s, %d claims were in the hub and %d statuses back", patience, arrived, returned))
		}
	}
}

// ErrSlow is returned when a run did not finish in time.
var ErrSlow = errors.New("it takes too long")

// Samples returns what happened to each claim, by name. They do not change any more once all claims have returned.
func (l *Load) Samples() map[string]Sample { return l.tracker.each() }
