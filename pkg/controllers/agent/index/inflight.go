// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A create request without an answer may still be carried out by a slow or frozen API server after its sender was
// killed or gave up. So a missing object in the hub may still appear; releasing the claim in between would leave an
// orphan in the hub.
//
// The same holds for a claim whose target namespace changed since: the object of the first request could appear beside
// the second one. So nothing is created elsewhere while a creation may be in flight.
//
// So a claim without an object in the hub is released only when no creation for it can be in flight. This
// process knows which creations it has sent. Of its predecessor's it knows only that they are older than itself:
// package fence keeps a live predecessor from sending more. When a connection ends, the API server gives up its
// requests, so that the time to allow for is short.

// InFlight tracks which creations may be in flight.
type InFlight struct {
	clock clock.PassiveClock
	// grace is how long a creation may be in flight after its sender stopped waiting for it.
	grace time.Duration

	mu sync.Mutex
	// began is the time of the first query, which is after the hub's first answer to this process.
	began time.Time
	// creations are those of this process that were given up and may be in flight.
	creations map[multicluster.ObjectRequest]creation
}

// creation is what may be in flight for a claim: requests that were given up, all at one place, until the time when
// none of them can be.
type creation struct {
	place ownership.Place
	until time.Time
}

// NewInFlight returns an empty InFlight. A creation may be in flight for grace after its sender gave it up.
func NewInFlight(c clock.PassiveClock, grace time.Duration) *InFlight {
	return &InFlight{clock: c, grace: grace, creations: map[multicluster.ObjectRequest]creation{}}
}

// Sent records the result of a creation, which says nothing about those that were given up before. An error that is not
// from the API server leaves the result unknown. It is called before the claim's next reconcile: one worker has a claim
// at a time.
func (f *InFlight) Sent(req multicluster.ObjectRequest, place ownership.Place, err error) {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) && status.Status().Code < http.StatusBadGateway && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for old, c := range f.creations {
		if !now.Before(c.until) {
			delete(f.creations, old)
		}
	}
	f.creations[req] = creation{place: place, until: now.Add(f.grace)}
}

// Wait returns how long to wait until no creation for a claim can be in flight.
func (f *InFlight) Wait(req multicluster.ObjectRequest) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	return max(f.predecessors(now), f.creations[req].until.Sub(now), 0)
}

// WaitElsewhere returns how long to wait before creating an object for a claim at a place of the hub, until no creation
// at another place can be in flight. protected means that a predecessor may have sent one.
func (f *InFlight) WaitElsewhere(req multicluster.ObjectRequest, place ownership.Place, protected bool) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	left := f.creations[req].until.Sub(now)
	if left > 0 && f.creations[req].place == place {
		return 0 // The name prevents a second object.
	}
	if protected {
		left = max(left, f.predecessors(now))
	}
	return max(left, 0)
}

// predecessors returns how long a predecessor's creation, at an unknown place, may still be in flight. The caller holds
// mu.
func (f *InFlight) predecessors(now time.Time) time.Duration {
	if f.began.IsZero() {
		f.began = now
	}
	return f.grace - now.Sub(f.began)
}
