// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"
)

// The programs that are measured.
const (
	masthead = "Masthead"
	peerName = "kubernetes-sigs/application v0.8.3"
)

// A scenario is one run: a program that keeps the status of a number of Applications, of three components each.
type scenario struct {
	subject string

	// period is how often the peer checks; 0 for Masthead, which watches.
	period time.Duration

	apps, ballast int

	// memoryOnly is whether the run is only about the memory: no changes are made.
	memoryOnly bool
}

// name is what the tables call the program.
func (s scenario) name() string {
	if s.period == 0 {
		return s.subject
	}
	return fmt.Sprintf("%s, period %.0f s", s.subject, s.period.Seconds())
}

// shortPeriodApps is the largest number of Applications with which the peer is measured with a period that is not its
// longest. With more it needs longer than any period to check each of them once, and the period does not matter any
// more.
const shortPeriodApps = 100

// scenarios are the runs in their order. Objects that belong to no Application are created before the first run that
// needs some, and are not deleted afterwards.
func (s settings) scenarios() []scenario {
	var out []scenario
	if s.ballast > 0 {
		// The same measurement without them.
		for _, n := range extremes(s.apps) {
			out = append(out, scenario{subject: masthead, apps: n, memoryOnly: true})
		}
	}
	for _, n := range s.apps {
		out = append(out, scenario{subject: masthead, apps: n, ballast: s.ballast})
		if s.peer == noPeer || !slices.Contains(s.peerApps, n) {
			continue
		}
		for i, period := range s.periods {
			if i == 0 || n <= shortPeriodApps {
				out = append(out, scenario{subject: peerName, period: period, apps: n, ballast: s.ballast})
			}
		}
	}
	return out
}

// extremes are the first and the last of some numbers.
func extremes(numbers []int) []int {
	if len(numbers) < 2 {
		return numbers
	}
	return []int{numbers[0], numbers[len(numbers)-1]}
}

// window is the time over which changes are spread: each begins at a random moment of it. For a program with a period
// it is that period, so that the change can come at any moment between two checks.
func (s scenario) window() time.Duration {
	return max(s.period, minWindow)
}

const minWindow = 10 * time.Second

// rounds is how often each of the Applications that are changed is changed, one change after the other, to make so many
// changes in all.
func (s scenario) rounds(changes int) int {
	if s.period > minWindow {
		// Each round takes a period. With fewer Applications than changes, there are fewer changes.
		return 1
	}
	return (changes + s.apps - 1) / s.apps
}

// idleFor is how long requests are counted: long enough for everything that a program does in a period.
func (s scenario) idleFor(idle time.Duration) time.Duration {
	if idle == 0 {
		return 0
	}
	return max(idle, s.period)
}
