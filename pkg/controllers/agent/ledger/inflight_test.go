// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

func TestInFlight(t *testing.T) {
	const grace = 10 * time.Second
	req := request.Request{ClusterName: "capi/default/w1"}
	here := ownership.Place{NamespacedName: types.NamespacedName{Namespace: "target-1", Name: "db"}}
	// begun moves the clock to a time when the predecessor's creations are no longer in flight.
	begun := func(f *InFlight, c *clocktesting.FakePassiveClock) {
		f.Wait(req)
		c.SetTime(c.Now().Add(grace))
	}
	cases := map[string]struct {
		reason string
		do     func(f *InFlight, c *clocktesting.FakePassiveClock)
		want   time.Duration
	}{
		"Beginning": {
			reason: "A predecessor may have sent something just before it was killed.",
			do:     func(*InFlight, *clocktesting.FakePassiveClock) {}, want: grace,
		},
		"BeginningIsWhenItWasFirstAsked": {
			reason: "While the hub does not answer, nothing can be known, however long this process runs.",
			do: func(_ *InFlight, c *clocktesting.FakePassiveClock) {
				c.SetTime(c.Now().Add(time.Hour))
			}, want: grace,
		},
		"Begun": {reason: "The predecessor's time is over.", do: begun},
		"Answered": {
			reason: "What was answered is known.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(req, here)
				f.Sent(req, nil)
			},
		},
		"Refused": {
			reason: "What was refused is not under way.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(req, here)
				f.Sent(req, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("exists")))
			},
		},
		"GivenUp": {
			reason: "Nobody knows what became of a request that was given up; the time counts from then.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(req, here)
				c.SetTime(c.Now().Add(time.Minute))
				f.Sent(req, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(time.Second))
			}, want: grace - time.Second,
		},
		"TimedOutInTheServer": {
			reason: "An API server that stops waiting for its store does not know either.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(req, here)
				f.Sent(req, apierrors.NewTimeoutError("slow", 1))
			}, want: grace,
		},
		"Another": {
			reason: "What was sent for one claim delays no other.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(request.Request{ClusterName: "capi/default/w2"}, here)
			},
		},
		"Forgotten": {
			reason: "What is kept does not grow with what was ever given up.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sending(req, here)
				f.Sent(req, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(grace + 1))
				f.Sending(request.Request{ClusterName: "capi/default/w2"}, here)
				if len(f.unanswered) != 1 {
					panic("the first is still kept")
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Now())
			f := NewInFlight(c, grace)
			tc.do(f, c)
			if got := f.Wait(req); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestNothingIsCreatedElsewhereWhileACreationMayBeUnderWay changes a claim's target after an unanswered creation.
func TestNothingIsCreatedElsewhereWhileACreationMayBeUnderWay(t *testing.T) {
	const grace = 10 * time.Second
	req := request.Request{ClusterName: "capi/default/w1"}
	place := func(namespace string) ownership.Place {
		return ownership.Place{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "db"}}
	}
	for name, tc := range map[string]struct {
		reason    string
		answer    error
		later     time.Duration
		to        string
		protected bool
		want      time.Duration
	}{
		"Elsewhere": {reason: "What was given up may still land, beside what would be created.", answer: context.DeadlineExceeded, to: "second", want: grace},
		"Over":      {reason: "It cannot land any more.", answer: context.DeadlineExceeded, later: grace, to: "second"},
		"Same":      {reason: "Of two creations in one place, one succeeds.", answer: context.DeadlineExceeded, to: "first", protected: true},
		"Answered":  {reason: "It is known what became of it.", to: "second"},
		"Predecessor": {
			reason: "A predecessor may have sent one for a claim that has the finalizer, to wherever.", to: "second", protected: true, want: grace,
		},
		"PredecessorOver": {reason: "It cannot land any more.", later: grace, to: "second", protected: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Now())
			f := NewInFlight(c, grace)
			f.Wait(req)
			f.Sending(req, place("first"))
			f.Sent(req, tc.answer)
			c.SetTime(c.Now().Add(tc.later))
			if got := f.WaitElsewhere(req, place(tc.to), tc.protected); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
