// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "testing"

func TestConnectionChangesAreLoggedWhenTheyAreNews(t *testing.T) {
	r := &record{state: StatePending}
	for _, tc := range []struct {
		say    string
		to     State
		reason string
		want   int
	}{
		{"A connection is tried.", StateConnecting, ReasonConnecting, 1},
		{"It fails.", StateBackoff, ReasonDialError, 0},
		{"It is tried again.", StateConnecting, ReasonDialError, 1},
		{"It fails for the same reason.", StateBackoff, ReasonDialError, 1},
		{"It is tried again.", StateConnecting, ReasonDialError, 1},
		{"It fails for another reason.", StateBackoff, ReasonUnauthorized, 0},
		{"It is tried again.", StateConnecting, ReasonUnauthorized, 1},
		{"It is made.", StateConnected, ReasonConnected, 0},
		{"It is replaced.", StateConnected, ReasonConnected, 0},
		{"A probe fails.", StateDegraded, ReasonDialError, 0},
		{"The next succeeds.", StateConnected, ReasonConnected, 0},
		{"It is lost.", StateBackoff, ReasonDialError, 0},
		{"It is held.", StatePending, ReasonPaused, 0},
		{"The cluster is gone.", StateRemoved, ReasonUnenrolled, 0},
	} {
		from := r.state
		r.state, r.reason = tc.to, tc.reason
		if got := r.verbosity(from); got != tc.want {
			t.Errorf("%s From %s to %s, %s: want the level %d, got %d", tc.say, from, tc.to, tc.reason, tc.want, got)
		}
	}
}
