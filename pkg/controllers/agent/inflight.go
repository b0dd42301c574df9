// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// A creation that was sent and not answered may still be carried out: by an API server that is slow, or that was frozen,
// when its sender has been killed or has given up. That nothing is in the hub now does not mean then that nothing will be;
// and a claim that was let go in between would leave an object in the hub of which nobody knows.
//
// So a claim for which nothing is found in the hub is only let go when no creation for it can be under way any more. Which
// creations this process has sent it knows. Of those of its predecessor it knows nothing but that they are older than itself:
// package fence keeps a predecessor that still lives from sending more. A connection that ends has the API server give up what
// came by it, so that the time to allow for is short.

// inFlight knows which creations may be under way.
type inFlight struct {
	clock clock.PassiveClock
	// grace is how long a creation may be under way after its sender has stopped to wait for it.
	grace time.Duration

	mu sync.Mutex
	// began is when it was first asked for, which is after the hub has answered this process for the first time.
	began time.Time
	// unanswered are the creations of this process to which there was no answer, or not yet, and when they were sent or
	// given up.
	unanswered map[Request]time.Time
}

func newInFlight(c clock.PassiveClock, grace time.Duration) *inFlight {
	return &inFlight{clock: c, grace: grace, unanswered: map[Request]time.Time{}}
}

// sending notes that a creation is about to be sent.
func (f *inFlight) sending(req Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for old, at := range f.unanswered {
		if now.Sub(at) > f.grace {
			delete(f.unanswered, old)
		}
	}
	f.unanswered[req] = now
}

// sent notes how a creation ended. An error that does not come from the API server says nothing about what it did.
func (f *inFlight) sent(req Request, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		delete(f.unanswered, req)
		return
	}
	f.unanswered[req] = f.clock.Now()
}

// wait is how long to wait until no creation of an object for a claim can be under way.
func (f *inFlight) wait(req Request) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if f.began.IsZero() {
		f.began = now
	}
	left := f.grace - now.Sub(f.began)
	if at, ok := f.unanswered[req]; ok {
		left = max(left, f.grace-now.Sub(at))
	}
	return max(left, 0)
}

// awaitsCreation is how long the deletion of a claim has to wait because an object could still be created for it. It need not if the
// claim says that its object was there and is being deleted: then none is being created.
func (r *requirementReconciler) awaitsCreation(s *scope) time.Duration {
	if shown := agentSynced(s.claim); shown != nil && shown["reason"] == ReasonDeleting {
		return 0
	}
	return r.inFlight.wait(s.Request)
}
