// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"container/list"
	"time"
)

// goroutinesPerWorker is how many goroutines a controller has per configured worker: one for the fast lane, one for the
// slow lane, and one for an item that begins to hang while it is in flight. Waiting for an API server needs no CPU.
const goroutinesPerWorker = 3

// lane is one of the two lanes of waiting clusters and items in flight.
type lane int

const (
	// laneFast is for the hub and for clusters whose items end in time.
	laneFast lane = iota
	// laneSlow is for clusters with a penalty. While as many items hang as there are workers, it is also for every item of
	// any cluster beyond its first in flight.
	laneSlow
)

// flight is an item in flight.
type flight[R comparable] struct {
	sub     *subQueue[R]
	started time.Time
	lane    lane
	// element is the place in lanes.fast; nil for an item of the hub or of the slow lane.
	element *list.Element
}

// lanes prevent clusters whose items hang from blocking the workers of the others. Each lane has the configured number
// of workers, and a hanging item moves from the fast lane to the slow one. They are guarded by the lock of the fair
// queue.
type lanes[R comparable] struct {
	workers int
	rings   [2]ring[R]
	// last is the lane that was served last.
	last lane
	// recovers is when the first penalty of a cluster waiting in the slow lane ends; zero if none has one.
	recovers time.Time

	// hub and slow count the items in flight of the hub and of the slow lane. The hub's never leave the fast lane.
	hub, slow int
	// fast are the other flights of the fast lane in the order of their start.
	fast list.List
}

func (l *lanes[R]) init(workers int) {
	l.workers = workers
	l.rings[laneFast].init()
	l.rings[laneSlow].init()
	l.fast.Init()
}

// waiting reports whether any cluster is in a ring.
func (l *lanes[R]) waiting() bool {
	return l.rings[laneFast].front() != nil || l.rings[laneSlow].front() != nil
}

// laneFor returns the lane in which a cluster waits.
func (l *lanes[R]) laneFor(sub *subQueue[R], now time.Time) lane {
	if sub.name != hub && (sub.window.penalised(now) || l.slow >= l.workers && sub.inFlight > 0) {
		return laneSlow
	}
	return laneFast
}

// free reports whether a lane has a free worker.
func (l *lanes[R]) free(which lane) bool {
	if which == laneFast {
		return l.fast.Len()+l.hub < l.workers
	}
	return l.slow < l.workers
}

// enter adds a cluster to the ring of its lane, or removes it if it may not be served.
func (l *lanes[R]) enter(sub *subQueue[R], now time.Time) {
	which := l.laneFor(sub, now)
	if sub.inRing() && sub.eligible() && sub.lane == which {
		return
	}
	l.leave(sub)
	if sub.eligible() {
		sub.lane = which
		l.rings[which].pushBack(sub)
		l.noteRecovery(sub, now)
	}
}

// noteRecovery records when the penalty of a cluster waiting in the slow lane ends.
func (l *lanes[R]) noteRecovery(sub *subQueue[R], now time.Time) {
	if sub.lane == laneSlow && sub.window.penalised(now) && (l.recovers.IsZero() || sub.window.until.Before(l.recovers)) {
		l.recovers = sub.window.until
	}
}

// moveRecovered moves the clusters whose penalty has ended from the slow lane to the fast one. While the slow lane has
// a free worker, the cluster at its front is moved anyway.
func (l *lanes[R]) moveRecovered(now time.Time) {
	if l.free(laneSlow) || l.recovers.IsZero() || now.Before(l.recovers) {
		return
	}
	l.recovers = time.Time{}
	waiting := make([]*subQueue[R], 0)
	for sub := range l.rings[laneSlow].all() {
		waiting = append(waiting, sub)
	}
	for _, sub := range waiting {
		l.enter(sub, now)
		l.noteRecovery(sub, now)
	}
}

// leave removes a cluster from its ring.
func (l *lanes[R]) leave(sub *subQueue[R]) {
	if sub.inRing() {
		l.rings[sub.lane].remove(sub)
	}
}

// next returns the cluster whose turn it is, or nil if none may be served now. The lanes alternate, so that neither
// waits for the other.
func (l *lanes[R]) next(now time.Time) *subQueue[R] {
	l.moveHung(now)
	l.moveRecovered(now)
	// Checking one lane may move clusters to the lane that was checked before.
	for range 2 {
		for _, which := range [2]lane{1 - l.last, l.last} {
			if sub := l.front(which, now); sub != nil {
				return sub
			}
		}
	}
	return nil
}

// front returns the first cluster of a lane, if that has a free worker. A cluster that no longer belongs there is
// moved.
func (l *lanes[R]) front(which lane, now time.Time) *subQueue[R] {
	for l.free(which) {
		sub := l.rings[which].front()
		if sub == nil || sub.eligible() && l.laneFor(sub, now) == which {
			return sub
		}
		l.enter(sub, now)
	}
	return nil
}

// start puts an item of a waiting cluster in flight, and moves the cluster to the end of its ring.
func (l *lanes[R]) start(sub *subQueue[R], now time.Time) *flight[R] {
	f := &flight[R]{sub: sub, started: now, lane: sub.lane}
	switch {
	case sub.name == hub:
		l.hub++
	case f.lane == laneSlow:
		l.slow++
	default:
		f.element = l.fast.PushBack(f)
	}
	sub.inFlight++
	l.last = f.lane
	l.leave(sub)
	l.enter(sub, now)
	return f
}

// end removes an item from flight.
func (l *lanes[R]) end(f *flight[R], now time.Time) {
	f.sub.inFlight--
	took := now.Sub(f.started)
	switch {
	case f.sub.name == hub:
		l.hub--
		return
	case f.lane == laneSlow:
		l.slow--
	default:
		l.fast.Remove(f.element)
	}
	if took >= hungAfter {
		f.sub.window.hung(now, took)
	} else {
		f.sub.window.ended(now)
	}
}

// moveHung moves the items that hang from the fast lane to the slow one.
func (l *lanes[R]) moveHung(now time.Time) {
	for {
		f := l.oldest()
		if f == nil || now.Sub(f.started) < hungAfter {
			return
		}
		l.fast.Remove(f.element)
		f.lane, f.element = laneSlow, nil
		l.slow++
		f.sub.window.hung(f.started.Add(hungAfter), hungAfter)
	}
}

// untilChange returns the time until a waiting cluster can be served even if nothing is added and no item ends.
func (l *lanes[R]) untilChange(now time.Time) (left time.Duration, some bool) {
	left, some = l.untilHung(now)
	if l.free(laneSlow) || l.recovers.IsZero() || l.rings[laneSlow].front() == nil {
		return left, some
	}
	if recovery := max(0, l.recovers.Sub(now)); !some || recovery < left {
		return recovery, true
	}
	return left, some
}

// untilHung returns the time until the next item hangs, if a cluster of the fast lane waits for its worker.
func (l *lanes[R]) untilHung(now time.Time) (left time.Duration, some bool) {
	f := l.oldest()
	if f == nil || l.free(laneFast) || l.rings[laneFast].front() == nil {
		return 0, false
	}
	return max(0, f.started.Add(hungAfter).Sub(now)), true
}

// oldest returns the item that has been in flight longest in the fast lane, or nil.
func (l *lanes[R]) oldest() *flight[R] {
	front := l.fast.Front()
	if front == nil {
		return nil
	}
	f, _ := front.Value.(*flight[R])
	return f
}
