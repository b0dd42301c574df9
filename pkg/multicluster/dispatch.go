// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// This file has the methods of a fair queue that run with its lock held.

// subFor returns the sub-queue to which an item of the cluster may be added, or nil if it must be dropped.
func (q *fairQueue[R]) subFor(name mcr.ClusterName) *subQueue[R] {
	sub, ok := q.subs[name]
	switch {
	case ok && sub.state != gateUnknown:
		return sub
	case q.gate != nil:
		return nil
	default:
		sub = q.newSub(name)
		sub.state = gateOpen
		return sub
	}
}

func (q *fairQueue[R]) newSub(name mcr.ClusterName) *subQueue[R] {
	w := newWindow(q.clusterLimit)
	if name == hub {
		w = window{size: q.hubLimit, limit: q.hubLimit}
	}
	sub := newSubQueue[R](name, w)
	q.subs[name] = sub
	return sub
}

// delay returns the delay of an item. If both a delay and the rate limiter are requested, the shorter wins.
func (q *fairQueue[R]) delay(sub *subQueue[R], item R, o priorityqueue.AddOpts) time.Duration {
	if !o.RateLimited {
		return o.After
	}
	sub.limited[item] = struct{}{}
	limited := q.limiter.When(item)
	if o.After > 0 {
		return min(o.After, limited)
	}
	return limited
}

// add queues an item, or merges it with the same item if that is already queued.
func (q *fairQueue[R]) add(sub *subQueue[R], item R, after time.Duration, priority int) {
	now := q.clock.Now()
	e, queued := sub.entries[item]
	if !queued {
		e = &entry[R]{item: item, sub: sub, priority: priority, seq: q.nextSeq()}
		sub.entries[item] = e
		if after > 0 {
			q.wait(e, now.Add(after))
			return
		}
		q.makeDue(e, now)
		return
	}

	if priority > e.priority {
		// It goes to the end of its new priority.
		if e.place == placeReady {
			sub.ready.raise(e, priority, q.nextSeq())
		} else {
			e.priority, e.seq = priority, q.nextSeq()
		}
	}
	if e.place != placeWaiting {
		return
	}
	q.waiting.remove(e)
	if after > 0 {
		at := now.Add(after)
		if e.readyAt.Before(at) {
			at = e.readyAt
		}
		q.wait(e, at)
		return
	}
	q.makeDue(e, now)
}

// wait adds an entry, which is in no heap, to the delayed ones.
func (q *fairQueue[R]) wait(e *entry[R], at time.Time) {
	e.place, e.readyAt = placeWaiting, at
	q.waiting.push(e)
	if q.waiting.peek() == e {
		q.wakeTimer()
	}
}

// wakeTimer makes the timer recompute when to fire.
func (q *fairQueue[R]) wakeTimer() {
	select {
	case q.earlier <- struct{}{}:
	default:
	}
}

// makeDue makes an entry, which is in no heap, available to the workers, once its item is no longer in flight.
func (q *fairQueue[R]) makeDue(e *entry[R], now time.Time) {
	q.due++
	e.since = now
	if _, busy := q.processing[e.item]; busy {
		e.place = placeBehind
		e.sub.behind++
		return
	}
	e.place = placeReady
	e.sub.ready.push(e)
	q.schedule(e.sub, now)
}

// schedule adds a cluster to the ring of its lane, if it may be served.
func (q *fairQueue[R]) schedule(sub *subQueue[R], now time.Time) {
	q.lanes.enter(sub, now)
	if sub.inRing() {
		q.available.Signal()
	}
}

// next returns the cluster whose turn it is, or nil. If all workers are busy, it makes the timer check for hanging
// items.
func (q *fairQueue[R]) next() *subQueue[R] {
	now := q.clock.Now()
	sub := q.lanes.next(now)
	if sub == nil && !q.watchesLanes {
		if _, q.watchesLanes = q.lanes.untilChange(now); q.watchesLanes {
			q.wakeTimer()
		}
	}
	return sub
}

// take hands out the first item of the cluster whose turn it is, and sends that cluster to the end of the ring.
func (q *fairQueue[R]) take(sub *subQueue[R]) *entry[R] {
	now := q.clock.Now()
	e := sub.ready.pop()
	delete(sub.entries, e.item)
	q.due--
	f := q.lanes.start(sub, now)
	q.processing[e.item] = f

	if f.lane == laneFast {
		since := e.since
		if sub.openedAt.After(since) {
			since = sub.openedAt
		}
		q.metrics.observeWait(q.name, now.Sub(since))
	}
	if q.lanes.waiting() {
		q.available.Signal()
	}
	return e
}

// purge drops all queued items of a cluster, and their rate limiter state.
func (q *fairQueue[R]) purge(sub *subQueue[R]) {
	q.lanes.leave(sub)
	for _, e := range sub.entries {
		if e.place == placeWaiting {
			q.waiting.remove(e)
		}
	}
	for item := range sub.limited {
		q.limiter.Forget(item)
	}
	q.due -= sub.depth()
	clear(sub.entries)
	clear(sub.limited)
	sub.ready = newReadyEntries[R]()
	sub.behind = 0
}

// retire drops an unused sub-queue: of a forgotten cluster once nothing is in flight, and, without a gate, of any
// cluster that has no work.
func (q *fairQueue[R]) retire(sub *subQueue[R]) {
	if sub.inFlight > 0 {
		return
	}
	unused := q.gate == nil && len(sub.entries) == 0 && len(sub.limited) == 0
	if sub.state == gateUnknown || unused {
		delete(q.subs, sub.name)
	}
}

func (q *fairQueue[R]) nextSeq() uint64 {
	q.seq++
	return q.seq
}

// setGate implements gatedQueue.
func (q *fairQueue[R]) setGate(name mcr.ClusterName, state gateState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	sub, ok := q.subs[name]
	if !ok {
		if state == gateUnknown {
			return
		}
		sub = q.newSub(name)
	}
	sub.state = state
	switch state {
	case gateOpen:
		sub.openedAt = q.clock.Now()
		q.schedule(sub, sub.openedAt)
	case gateClosed:
		q.lanes.leave(sub)
	case gateUnknown:
		q.purge(sub)
		q.retire(sub)
	}
}

// idle implements gatedQueue.
func (q *fairQueue[R]) idle(name mcr.ClusterName) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	sub, ok := q.subs[name]
	if !ok || sub.inFlight == 0 {
		c := make(chan struct{})
		close(c)
		return c
	}
	if sub.idle == nil {
		sub.idle = make(chan struct{})
	}
	return sub.idle
}

// inFlight implements gatedQueue.
func (q *fairQueue[R]) inFlight(name mcr.ClusterName) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if sub, ok := q.subs[name]; ok {
		return sub.inFlight
	}
	return 0
}

// standings implements depthSource.
func (q *fairQueue[R]) standings() map[mcr.ClusterName]standing {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	standings := make(map[mcr.ClusterName]standing, len(q.subs))
	for name, sub := range q.subs {
		if sub.state != gateUnknown {
			standings[name] = standing{depth: sub.depth(), hanging: sub.window.penalised(now)}
		}
	}
	return standings
}

// runTimer calls promote whenever something is due, until shutdown.
func (q *fairQueue[R]) runTimer() {
	for {
		next, some := q.promote()
		var fired <-chan time.Time
		stop := func() bool { return true }
		if some {
			t := q.clock.NewTimer(next)
			fired, stop = t.C(), t.Stop
		}
		select {
		case <-q.done:
			stop()
			return
		case <-q.earlier:
		case <-fired:
		}
		stop()
	}
}

// promote handles everything that is due now, and returns the time until the next change.
func (q *fairQueue[R]) promote() (next time.Duration, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	next, some = q.promoteDelayed(now)
	if left, blocked := q.promoteBlocked(now); blocked && (!some || left < next) {
		next, some = left, true
	}
	return next, some
}

// promoteDelayed makes expired delayed entries due, and returns the time until the next one.
func (q *fairQueue[R]) promoteDelayed(now time.Time) (next time.Duration, some bool) {
	for e := q.waiting.peek(); e != nil; e = q.waiting.peek() {
		if left := e.readyAt.Sub(now); left > 0 {
			return left, true
		}
		q.waiting.pop()
		e.seq = q.nextSeq() // In the order in which they became due, not in which they were added.
		q.makeDue(e, now)
	}
	return 0, false
}

// promoteBlocked moves items and clusters that have to change lanes if clusters wait for workers, and returns the time
// until the next such change.
func (q *fairQueue[R]) promoteBlocked(now time.Time) (next time.Duration, some bool) {
	if q.lanes.next(now) != nil {
		q.available.Signal()
	}
	next, q.watchesLanes = q.lanes.untilChange(now)
	return next, q.watchesLanes
}
