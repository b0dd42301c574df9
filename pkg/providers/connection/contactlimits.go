// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "github.com/masthead-dev/masthead/pkg/limits"

// A lane is a kind of contact with clusters. Each lane has its own places, so that no kind waits for another.
type lane int

const (
	// laneFirst are attempts to connect to clusters that have not failed yet.
	laneFirst lane = iota
	// laneRetry are attempts to connect to clusters that failed before: each most likely takes a time-out.
	laneRetry
	// laneProbe are probes of connections whose last probe succeeded, and took no long time.
	laneProbe
	// laneRecovery are probes of other connections: each most likely takes a time-out, too, but work waits for those that
	// recover.
	laneRecovery
	// laneReplace are attempts to replace a connection. The place is held until the old connection has ended: meanwhile, a
	// cluster has two.
	laneReplace
	// laneOffboard are clusters that are offboarded. They wait in goroutines of their own.
	laneOffboard
	// laneCount is the number of lanes.
	laneCount
)

// attemptLane returns the lane of the next attempt to connect.
func (r *record) attemptLane(replace bool) lane {
	switch {
	case replace:
		return laneReplace
	case r.attempts > 0:
		return laneRetry
	default:
		return laneFirst
	}
}

// probeLane returns the lane of the next probe.
func (r *record) probeLane() lane {
	if r.probeFailures > 0 || r.slow {
		return laneRecovery
	}
	return laneProbe
}

// lanePlaces returns the number of places of each lane, given the number of concurrent first attempts.
func lanePlaces(workers int) [laneCount]int {
	half := max(1, workers/2)
	return [laneCount]int{laneFirst: workers, laneRetry: half, laneProbe: workers, laneRecovery: half, laneReplace: half, laneOffboard: half}
}

// workersFor returns the number of workers: one for every place of every lane, and some for reconciles without contact.
// So only the lanes make enrolments wait, never the queue.
func workersFor(workers int) int {
	n := max(1, workers/4)
	for l, places := range lanePlaces(workers) {
		if lane(l) == laneOffboard {
			continue
		}
		n += places
	}
	return n
}

// lanes limit concurrent contacts with clusters. Waiting blocks no worker: a key without a place continues with steps
// that need none, and is requeued when it gets one.
type lanes [laneCount]*limits.Slots[Key]

// newLanes makes lanes for that many concurrent first attempts, of which perNamespace may be of one namespace of the
// hub (a tenant); the other lanes are shared in proportion.
func newLanes(workers, perNamespace int, wake func(Key)) *lanes {
	all := &lanes{}
	for l, n := range lanePlaces(workers) {
		all[l] = limits.NewSlots(n, max(1, (n*perNamespace+workers-1)/workers), wake)
	}
	return all
}

// settle gives up the turns of a key in lanes in which it no longer waits.
func (all *lanes) settle(k Key, waits [laneCount]bool) {
	for l, slots := range all {
		if !waits[l] {
			slots.Release(k)
		}
	}
}
