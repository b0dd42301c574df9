// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

// A creation that was sent and not answered may still be carried out: by an API server that is slow, or that was
// frozen, when its sender has been killed or has given up. That nothing is in the hub now does not mean then that
// nothing will be; and a claim that was let go in between would leave an object in the hub of which nobody knows.
//
// The same is true of a claim whose target namespace has changed since: what was sent to the one could land beside what
// is created in the other. So nothing is created in another place while a creation can be under way.
//
// So a claim for which nothing is found in the hub is only let go when no creation for it can be under way any more.
// Which creations this process has sent it knows. Of those of its predecessor it knows nothing but that they are older
// than itself: package fence keeps a predecessor that still lives from sending more. A connection that ends has the API
// server give up what came by it, so that the time to allow for is short.

// InFlight knows which creations may be under way.
type InFlight struct {
	clock clock.PassiveClock
	// grace is how long a creation may be under way after its sender has stopped to wait for it.
	grace time.Duration

	mu sync.Mutex
	// began is when it was first asked for, which is after the hub has answered this process for the first time.
	began time.Time
	// unanswered are the creations of this process to which there was no answer, or not yet.
	unanswered map[request.Request]creation
}

// creation is a request that creates an object in the hub.
type creation struct {
	place ownership.Place

	// at is when it was sent or given up.
	at time.Time
}

// NewInFlight returns one that knows nothing yet. A creation may be under way for grace after its sender has given it
// up.
func NewInFlight(c clock.PassiveClock, grace time.Duration) *InFlight {
	return &InFlight{clock: c, grace: grace, unanswered: map[request.Request]creation{}}
}

// Sending notes that a creation is about to be sent.
func (f *InFlight) Sending(req request.Request, place ownership.Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for old, c := range f.unanswered {
		if now.Sub(c.at) > f.grace {
			delete(f.unanswered, old)
		}
	}
	f.unanswered[req] = creation{place: place, at: now}
}

// Sent notes how a creation ended. An error that does not come from the API server says nothing about what it did.
func (f *InFlight) Sent(req request.Request, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		delete(f.unanswered, req)
		return
	}
	f.unanswered[req] = creation{place: f.unanswered[req].place, at: f.clock.Now()}
}

// Wait is how long to wait until no creation of an object for a claim can be under way.
func (f *InFlight) Wait(req request.Request) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	left := f.predecessors(now)
	if c, ok := f.unanswered[req]; ok {
		left = max(left, f.grace-now.Sub(c.at))
	}
	return max(left, 0)
}

// WaitElsewhere is how long to wait before an object is created for a claim at a place of the hub, until no creation at
// another place can be under way. protected is whether somebody may have sent one before.
func (f *InFlight) WaitElsewhere(req request.Request, place ownership.Place, protected bool) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	left := time.Duration(0)
	if c, ok := f.unanswered[req]; ok {
		if c.place == place {
			return 0 // That one is arbitrated by the name.
		}
		left = f.grace - now.Sub(c.at)
	}
	if protected {
		left = max(left, f.predecessors(now))
	}
	return max(left, 0)
}

// predecessors is how long a creation of a predecessor may still be under way, of which it is not known to which place
// it goes. The caller holds mu.
func (f *InFlight) predecessors(now time.Time) time.Duration {
	if f.began.IsZero() {
		f.began = now
	}
	return f.grace - now.Sub(f.began)
}
