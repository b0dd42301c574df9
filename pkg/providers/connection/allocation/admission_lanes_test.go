// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import "testing"

func TestLanes(t *testing.T) {
	cases := map[string]struct {
		reason    string
		got, want Lane
	}{
		"FirstAttempt": {
			"What was just enrolled does not wait for what failed before.", AttemptLane(0), First,
		},
		"NextAttempt": {
			"An attempt after a failure costs a time-out, most likely.", AttemptLane(1), Retry,
		},
		"Probe": {
			"A live connection is probed regardless of the others.", ProbeLane(false), Probe,
		},
		"ProbeAfterAFailure": {
			"A connection that may be back does not wait for clusters that are dead.", ProbeLane(true), Recovery,
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
	for l, n := range Places(50) {
		if n == 0 {
			t.Errorf("lane %d has no place", l)
		}
		if Lane(l) != Offboard {
			sum += n
		}
	}
	if got := WorkersFor(50); got <= sum {
		t.Errorf("want a worker for each of %d places and some to spare, got %d", sum, got)
	}
}
