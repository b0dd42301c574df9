// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// fakeLock is a lock whose writes take time, and fail if err is set.
type fakeLock struct {
	resourcelock.Interface

	clock *clocktesting.FakePassiveClock
	takes time.Duration
	err   error
	sent  int
}

func (l *fakeLock) Identity() string { return "me" }

func (l *fakeLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.sent++
	l.clock.SetTime(l.clock.Now().Add(l.takes))
	return l.err
}

func TestOpen(t *testing.T) {
	const duration = 15 * time.Second
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	type write struct {
		record resourcelock.LeaderElectionRecord
		takes  time.Duration
		err    error
	}
	cases := map[string]struct {
		reason string
		writes []write
		later  time.Duration
		want   bool
	}{
		"Never":      {reason: "Who never had the lease never writes."},
		"Held":       {reason: "The lease is held.", writes: []write{{record: mine}}, later: 14 * time.Second, want: true},
		"RunOut":     {reason: "Others may have the lease from now on.", writes: []write{{record: mine}}, later: 15 * time.Second},
		"SlowAnswer": {reason: "Others count from when they saw the renewal, which is not later than its answer.", writes: []write{{record: mine, takes: 10 * time.Second}}, later: 5 * time.Second},
		"Renewed":    {reason: "A renewal counts from when it began.", writes: []write{{record: mine, takes: 10 * time.Second}, {record: mine}}, later: 14 * time.Second, want: true},
		"NotRenewed": {reason: "A renewal that failed is none.", writes: []write{{record: mine, takes: 10 * time.Second}, {record: mine, err: errors.New("no")}}, later: 5 * time.Second},
		"GivenBack":  {reason: "Who gives the lease back has stopped before.", writes: []write{{record: mine}, {}}},
		"GivingBack": {reason: "Nor does who could not give it back go on.", writes: []write{{record: mine}, {err: errors.New("no")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Now())
			f := New(duration, c)
			for i, w := range tc.writes {
				l := f.Lock(&fakeLock{clock: c, takes: w.takes, err: w.err})
				do := l.Update
				if i == 0 {
					do = l.Create
				}
				if err := do(t.Context(), w.record); !errors.Is(err, w.err) {
					t.Fatalf("The lock's own error is passed on: %v", err)
				}
			}
			c.SetTime(c.Now().Add(tc.later))
			if got := f.Open(); got != tc.want {
				t.Errorf("%s Open: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// A leader that hung reads the lease when it ends, and releases what it has read: client-go checks whose the lease was
// before.
func TestReleaseOnlyWhatIsHeld(t *testing.T) {
	const duration = 15 * time.Second
	for name, tc := range map[string]struct {
		later time.Duration
		sent  int
		err   error
	}{
		"Held":    {later: duration - 1, sent: 2},
		"Expired": {later: duration, sent: 1, err: ErrNotLeading},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Now())
			lease := &fakeLock{clock: c}
			l := New(duration, c).Lock(lease)
			if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
				t.Fatal(err)
			}
			c.SetTime(c.Now().Add(tc.later))
			if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, tc.err) || lease.sent != tc.sent {
				t.Errorf("want %d writes and %v, got %d and %v", tc.sent, tc.err, lease.sent, err)
			}
		})
	}
}

type recorder struct{ sent int }

func (r *recorder) RoundTrip(*http.Request) (*http.Response, error) {
	r.sent++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestWrap(t *testing.T) {
	cases := map[string]struct {
		reason, method, path string
		open, want           bool
	}{
		"ReadClosed":   {reason: "Reads are always allowed.", method: http.MethodGet, path: "/api/v1/secrets", want: true},
		"WriteClosed":  {reason: "That is what it is for.", method: http.MethodPatch, path: "/apis/database.acmeco.org/v1alpha1/namespaces/bar/x/y"},
		"DeleteClosed": {reason: "A deletion is a change.", method: http.MethodDelete, path: "/apis/database.acmeco.org/v1alpha1/namespaces/bar/x/y"},
		"WriteOpen":    {reason: "The leader works.", method: http.MethodPatch, path: "/apis/database.acmeco.org/v1alpha1/namespaces/bar/x/y", open: true, want: true},
		"TokenReview":  {reason: "Every replica serves metrics.", method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews", want: true},
		"AccessReview": {reason: "Every replica looks at its rights.", method: http.MethodPost, path: "/prefix/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(time.Now())
			f := New(time.Second, c)
			if tc.open {
				f.renew(c.Now())
			}
			next := &recorder{}
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://hub.example.org"+tc.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := f.Wrap(next).RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if sent := next.sent == 1; sent != tc.want || (err == nil) != tc.want || !tc.want && !errors.Is(err, ErrNotLeading) {
				t.Errorf("%s want sent %t, got %t and %v", tc.reason, tc.want, sent, err)
			}
		})
	}
}
