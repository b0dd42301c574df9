// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrNotLeading is the error of a request that was not sent.
var ErrNotLeading = errors.New("this replica does not hold the lease, and changes nothing")

// Fence tracks until when a process may write. Create one with New.
type Fence struct {
	duration time.Duration
	clock    clock.PassiveClock

	mu sync.Mutex
	// renewed is when the last successful renewal began; zero while the lease is not held.
	renewed time.Time
}

// New returns a closed fence for leases of the given duration.
func New(leaseDuration time.Duration, c clock.PassiveClock) *Fence {
	return &Fence{duration: leaseDuration, clock: c}
}

// Open reports whether the process may write now.
func (f *Fence) Open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.renewed.IsZero() && f.clock.Since(f.renewed) < f.duration
}

func (f *Fence) renew(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = at
}

// Lock wraps the leader election lock so that the fence sees renewals.
func (f *Fence) Lock(of resourcelock.Interface) resourcelock.Interface {
	return &lock{Interface: of, fence: f}
}

type lock struct {
	resourcelock.Interface

	fence *Fence
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *lock) write(record resourcelock.LeaderElectionRecord, write func() error) error {
	if record.HolderIdentity != l.Identity() {
		// The lease is being released. client-go reads it first, and would release a lease that another replica holds by now.
		if !l.fence.Open() {
			return ErrNotLeading
		}
		l.fence.renew(time.Time{})
		return write()
	}
	began := l.fence.clock.Now()
	if err := write(); err != nil {
		return err
	}
	l.fence.renew(began)
	return nil
}

// Wrap returns a transport that fails write requests with ErrNotLeading while the fence is closed.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, fence: f}
}

type transport struct {
	next  http.RoundTripper
	fence *Fence
}

var _ utilnet.RoundTripperWrapper = &transport{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if changes(req) && !t.fence.Open() {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrNotLeading
	}
	return t.next.RoundTrip(req)
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// changes reports whether a request is a write. Reviews are POSTed, but change nothing.
func changes(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	for _, reviews := range []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"} {
		if strings.Contains(req.URL.Path, reviews) {
			return false
		}
	}
	return true
}
