// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestInFlight(t *testing.T) {
	const grace = 10 * time.Second
	req := multicluster.ObjectRequest{ClusterName: "capi/default/w1"}
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
		"BeginningIsTheFirstQuery": {
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
				f.Sent(req, here, nil)
			},
		},
		"Refused": {
			reason: "What was refused is not under way.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("exists")))
			},
		},
		"GivenUp": {
			reason: "The outcome of a request that was given up is unknown. The time counts from then.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				c.SetTime(c.Now().Add(time.Minute))
				f.Sent(req, here, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(time.Second))
			}, want: grace - time.Second,
		},
		"AnsweredByAProxy": {
			reason: "An answer of what stands before the API server says nothing of what the server does.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", schema.GroupResource{}, "x", "", 0, true))
			}, want: grace,
		},
		"GivenUpThenAnswered": {
			reason: "An answer says nothing about an earlier request, which could still create the object once that of the second is deleted.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(time.Second))
				f.Sent(req, here, nil)
			}, want: grace - time.Second,
		},
		"GivenUpThenSent": {
			reason: "The latest counts, once it is given up, too.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(time.Second))
				f.Sent(req, here, context.DeadlineExceeded)
			}, want: grace,
		},
		"TimedOutInTheServer": {
			reason: "An API server that stops waiting for its store does not know either.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, apierrors.NewTimeoutError("slow", 1))
			}, want: grace,
		},
		"Another": {
			reason: "What was sent for one claim delays no other.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(multicluster.ObjectRequest{ClusterName: "capi/default/w2"}, here, context.DeadlineExceeded)
			},
		},
		"Forgotten": {
			reason: "What is kept does not grow with what was ever given up.",
			do: func(f *InFlight, c *clocktesting.FakePassiveClock) {
				begun(f, c)
				f.Sent(req, here, context.DeadlineExceeded)
				c.SetTime(c.Now().Add(grace + 1))
				f.Sent(multicluster.ObjectRequest{ClusterName: "capi/default/w2"}, here, context.DeadlineExceeded)
				if len(f.creations) != 1 {
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
	req := multicluster.ObjectRequest{ClusterName: "capi/default/w1"}
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
			f.Sent(req, place("first"), tc.answer)
			c.SetTime(c.Now().Add(tc.later))
			if got := f.WaitElsewhere(req, place(tc.to), tc.protected); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestInFlightForgetsNothingThatCanLand compares InFlight, for every sequence of a few steps, with a list of all
// requests. A claim's object may be created in two places, and the claim may be released at any time.
func TestInFlightForgetsNothingThatCanLand(t *testing.T) {
	const (
		grace, tick = 10 * time.Second, 4 * time.Second
		depth       = 7
	)
	type givenUp struct {
		place ownership.Place
		at    time.Time
	}
	req, other := multicluster.ObjectRequest{ClusterName: "capi/default/w1"}, multicluster.ObjectRequest{ClusterName: "capi/default/w2"}
	places := []ownership.Place{
		{NamespacedName: types.NamespacedName{Namespace: "target-1", Name: "db"}},
		{NamespacedName: types.NamespacedName{Namespace: "target-2", Name: "db"}},
	}
	type step struct {
		name string
		take func(f *InFlight, c *clocktesting.FakePassiveClock, all []givenUp) (now []givenUp, taken bool)
	}
	send := func(name string, place ownership.Place, err error) step {
		return step{name: name, take: func(f *InFlight, c *clocktesting.FakePassiveClock, all []givenUp) ([]givenUp, bool) {
			if f.WaitElsewhere(req, place, true) > 0 {
				return all, false
			}
			f.Sent(req, place, err)
			if err != nil {
				all = append(all, givenUp{place: place, at: c.Now()})
			}
			return all, true
		}}
	}
	steps := []step{
		send("AnswerFor1", places[0], nil), send("AnswerFor2", places[1], nil),
		send("GiveUpFor1", places[0], context.DeadlineExceeded), send("GiveUpFor2", places[1], context.DeadlineExceeded),
		{name: "Tick", take: func(_ *InFlight, c *clocktesting.FakePassiveClock, all []givenUp) ([]givenUp, bool) {
			c.SetTime(c.Now().Add(tick))
			return all, true
		}},
		{name: "GiveUpForAnother", take: func(f *InFlight, _ *clocktesting.FakePassiveClock, all []givenUp) ([]givenUp, bool) {
			f.Sent(other, places[0], context.DeadlineExceeded)
			return all, true
		}},
	}
	// run takes the steps, and reports whether each could be taken.
	run := func(sequence []int) bool {
		c := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		f := NewInFlight(c, grace)
		f.Wait(req)
		c.SetTime(c.Now().Add(grace)) // Predecessors are not the subject.
		var all []givenUp
		var taken []string
		for _, i := range sequence {
			var ok bool
			if all, ok = steps[i].take(f, c, all); !ok {
				return false
			}
			taken = append(taken, steps[i].name)
		}
		want, elsewhere := time.Duration(0), map[ownership.Place]time.Duration{}
		for _, g := range all {
			left := g.at.Add(grace).Sub(c.Now())
			want = max(want, left)
			for _, place := range places {
				if place != g.place {
					elsewhere[place] = max(elsewhere[place], left)
				}
			}
		}
		if got := f.Wait(req); got != want {
			t.Errorf("%v: want a release to wait %s, got %s", taken, want, got)
		}
		for _, place := range places {
			if got := f.WaitElsewhere(req, place, true); got < elsewhere[place] {
				t.Errorf("%v: want a creation in %s to wait %s, got %s", taken, place.Namespace, elsewhere[place], got)
			}
		}
		return !t.Failed()
	}
	var explore func(sequence []int)
	explore = func(sequence []int) {
		if t.Failed() || !run(sequence) || len(sequence) == depth {
			return
		}
		for i := range steps {
			explore(append(slices.Clone(sequence), i))
		}
	}
	explore(nil)
}
