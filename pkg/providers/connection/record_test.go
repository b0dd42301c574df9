// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestConnectionChangesAreLoggedWhenTheyAreNews(t *testing.T) {
	r := &record{state: StatePending}
	for _, tc := range []struct {
		say    string
		to     State
		reason string
		want   int
	}{
		{"A connection is tried.", StateConnecting, fleetv1alpha1.ReasonConnecting, 1},
		{"It fails.", StateBackoff, fleetv1alpha1.ReasonDialError, 0},
		{"It is tried again.", StateConnecting, fleetv1alpha1.ReasonDialError, 1},
		{"It fails for the same reason.", StateBackoff, fleetv1alpha1.ReasonDialError, 1},
		{"It is tried again.", StateConnecting, fleetv1alpha1.ReasonDialError, 1},
		{"It fails for another reason.", StateBackoff, fleetv1alpha1.ReasonUnauthorized, 0},
		{"It is tried again.", StateConnecting, fleetv1alpha1.ReasonUnauthorized, 1},
		{"It is made.", StateConnected, fleetv1alpha1.ReasonConnected, 0},
		{"It is replaced.", StateConnected, fleetv1alpha1.ReasonConnected, 0},
		{"A probe fails.", StateDegraded, fleetv1alpha1.ReasonDialError, 0},
		{"The next succeeds.", StateConnected, fleetv1alpha1.ReasonConnected, 0},
		{"It is lost.", StateBackoff, fleetv1alpha1.ReasonDialError, 0},
		{"It is held.", StatePending, fleetv1alpha1.ReasonPaused, 0},
		{"The cluster is gone.", StateRemoved, fleetv1alpha1.ReasonUnenrolled, 0},
	} {
		from := r.state
		r.state, r.reason = tc.to, tc.reason
		if got := r.verbosity(from); got != tc.want {
			t.Errorf("%s From %s to %s, %s: want the level %d, got %d", tc.say, from, tc.to, tc.reason, tc.want, got)
		}
	}
}
