// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func denied(by string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "x", errors.New(
		"ValidatingAdmissionPolicy '"+by+"' with binding '"+by+"' denied request: no"))
}

func TestExcuses(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	known := func(u *PolicyUser, at time.Time) {
		_, doubts := u.Name()
		u.Learn("us", doubts, at)
	}
	for name, tc := range map[string]struct {
		reason string
		before func(u *PolicyUser)
		err    error
		at     time.Duration
		want   bool
		asks   int
	}{
		"Changed":  {reason: "The cluster may know Masthead as another user by now.", before: func(u *PolicyUser) { known(u, start) }, err: denied(PolicyName), want: true, asks: 1},
		"Another":  {reason: "Another policy of the cluster is none of ours.", before: func(u *PolicyUser) { known(u, start) }, err: denied("theirs")},
		"NoRight":  {reason: "A missing right is no policy.", before: func(u *PolicyUser) { known(u, start) }, err: apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))},
		"NoPolicy": {reason: "No controller keeps a policy there, so none would correct it.", before: func(*PolicyUser) {}, err: denied(PolicyName)},
		"Requested": {reason: "The answer is on its way.", before: func(u *PolicyUser) {
			known(u, start)
			u.Doubt(start)
		}, err: denied(PolicyName), want: true},
		"NotAnswered": {reason: "The username was not requested, or the cluster did not answer.", before: func(u *PolicyUser) {
			known(u, start)
			u.Doubt(start)
		}, err: denied(PolicyName), at: patience},
		"InVain": {reason: "The cluster says that the user is as before.", before: func(u *PolicyUser) {
			known(u, start)
			u.Doubt(start)
			known(u, start)
		}, err: denied(PolicyName), at: settles},
		"LongAgo": {reason: "What it said may have changed since.", before: func(u *PolicyUser) {
			known(u, start)
			u.Doubt(start)
			known(u, start)
		}, err: denied(PolicyName), at: sureFor, want: true, asks: 1},
		"Written": {reason: "The API server has not heard of the new policy yet.", before: func(u *PolicyUser) {
			known(u, start)
			u.Doubt(start)
			known(u, start)
			u.Wrote(start)
		}, err: denied(PolicyName), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			users, requests := &PolicyUsers{}, 0
			users.OnDoubt(func(mcr.ClusterName) { requests++ })
			tc.before(users.ForCluster("w1"))
			if got := users.Excuses("w1", tc.err, start.Add(tc.at)); got != tc.want || requests != tc.asks {
				t.Errorf("%s want %v and %d requests, got %v and %d", tc.reason, tc.want, tc.asks, got, requests)
			}
			if tc.asks > 0 {
				if !users.Excuses("w1", tc.err, start.Add(tc.at)) || requests != tc.asks {
					t.Errorf("%s want one request for several refusals, got %d", tc.reason, requests)
				}
			}
		})
	}
}

func TestAnAnswerFromBeforeADoubtIsNotKept(t *testing.T) {
	u, now := &PolicyUser{}, time.Now()
	_, doubts := u.Name()
	u.Doubt(now)
	u.Learn("before", doubts, now)
	if user, _ := u.Name(); user != "" {
		t.Errorf("want an answer from before the doubt to be discarded, got %q", user)
	}
	_, doubts = u.Name()
	u.Learn("after", doubts, now)
	if user, _ := u.Name(); user != "after" {
		t.Errorf("want an answer from after the doubt to be kept, got %q", user)
	}
}

func TestADoubtInVainIsRemembered(t *testing.T) {
	u, now := &PolicyUser{}, time.Now()
	say := func(user string) {
		_, doubts := u.Name()
		u.Learn(user, doubts, now)
	}
	say("us")
	if u.IsSure(now) {
		t.Error("want nothing to be sure that was never doubted")
	}
	u.Doubt(now)
	u.Doubt(now)
	say("us")
	if !u.IsSure(now) || u.IsSure(now.Add(sureFor)) {
		t.Error("want what was doubted in vain to be sure for a while")
	}
	u.Doubt(now)
	say("others")
	if u.IsSure(now) {
		t.Error("want another user not to be sure")
	}
}
