// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "testing"

func TestLanes(t *testing.T) {
	cases := map[string]struct {
		reason    string
		got, want lane
	}{
		"FirstAttempt": {
			"What was just enrolled does not wait for what failed before.", attemptLane(0), laneFirst,
		},
		"NextAttempt": {
			"An attempt after a failure costs a time-out, most likely.", attemptLane(1), laneRetry,
		},
		"Probe": {
			"A live connection is probed whatever becomes of the others.", probeLane(0), laneProbe,
		},
		"ProbeAfterAFailure": {
			"A connection that may be back does not wait for clusters that are dead.", probeLane(1), laneRecovery,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s want lane %d, got %d", tc.reason, tc.want, tc.got)
			}
		})
	}
	sum := 0
	for l, n := range places(50) {
		if n == 0 {
			t.Errorf("lane %d has no place", l)
		}
		sum += n
	}
	if got := workersFor(50); got <= sum {
		t.Errorf("want a worker for each of %d places and some to spare, got %d", sum, got)
	}
}
