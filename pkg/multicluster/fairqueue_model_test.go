// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// modelItem is what the model knows of a queued item.
type modelItem struct {
	priority int
	seq      int
	due      bool
	at       time.Time
}

// model is a fair queue that is as simple as possible: it has maps, and reads everything for every question.
type model struct {
	t        *testing.T
	q        *fairQueue[mcreconcile.Request]
	g        *Gate
	clock    *clocktesting.FakeClock
	limits   map[mcr.ClusterName]int
	states   map[mcr.ClusterName]gateState
	queued   map[mcreconcile.Request]*modelItem
	inFlight map[mcreconcile.Request]time.Time
	order    []mcreconcile.Request
	seq      int
	// windows are how many items of a cluster may be in flight, and until is when its penalty ends.
	windows map[mcr.ClusterName]int
	until   map[mcr.ClusterName]time.Time
	// ahead counts the items with a positive priority that a cluster was served in a row.
	ahead map[mcr.ClusterName]int
	// passed counts how many items of others were served while the cluster could have been.
	passed map[mcr.ClusterName]int
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{
		t:        t,
		g:        NewGate(),
		clock:    clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		limits:   map[mcr.ClusterName]int{hub: 12, "a": 3, "b": 3, "c": 3},
		states:   map[mcr.ClusterName]gateState{hub: gateOpen},
		queued:   map[mcreconcile.Request]*modelItem{},
		inFlight: map[mcreconcile.Request]time.Time{},
		windows:  map[mcr.ClusterName]int{hub: 12, "a": 1, "b": 1, "c": 1},
		until:    map[mcr.ClusterName]time.Time{},
		ahead:    map[mcr.ClusterName]int{},
		passed:   map[mcr.ClusterName]int{},
	}
	// The queue has no timer here: promote does its work.
	m.q = newFairQueue("", FairQueueOptions[mcreconcile.Request]{Gate: m.g, Workers: 16, MaxInFlightPerCluster: 3, Clock: m.clock})
	m.g.join(m.q)
	return m
}

func (m *model) next() int {
	m.seq++
	return m.seq
}

func (m *model) add(item mcreconcile.Request, requested int, after time.Duration) {
	m.q.AddWithOpts(priorityqueue.AddOpts{Priority: &requested, After: after}, item)
	priority := requested
	if after > 0 {
		priority = min(requested, 0)
	}
	if m.states[item.ClusterName] == gateUnknown {
		return
	}
	at := m.clock.Now().Add(after)
	it, ok := m.queued[item]
	if !ok {
		m.queued[item] = &modelItem{priority: priority, seq: m.next(), due: after == 0, at: at}
		return
	}
	if priority > it.priority {
		it.priority, it.seq = priority, m.next()
	}
	if !it.due && after == 0 {
		it.due = true
	}
	if !it.due && at.Before(it.at) {
		it.at = at
	}
}

func (m *model) step(d time.Duration) {
	m.clock.Step(d)
	m.q.promote()
	for {
		var first *modelItem
		for _, it := range m.queued {
			if it.due || it.at.After(m.clock.Now()) {
				continue
			}
			switch {
			case first == nil, it.at.Before(first.at):
				first = it
			case it.at.Equal(first.at) && (it.priority > first.priority || it.priority == first.priority && it.seq < first.seq):
				first = it
			}
		}
		if first == nil {
			return
		}
		first.due, first.seq = true, m.next()
	}
}

func (m *model) set(name mcr.ClusterName, state gateState) {
	switch state {
	case gateOpen:
		m.g.Open(name)
	case gateClosed:
		m.g.Close(name)
	case gateUnknown:
		delete(m.ahead, name)
		m.g.Forget(name)
		for item := range m.queued {
			if item.ClusterName == name {
				delete(m.queued, item)
			}
		}
	}
	m.states[name] = state
	m.passed[name] = 0
	m.forget(name)
}

// forget drops what is known of a removed cluster, once none of its items are in flight any more.
func (m *model) forget(name mcr.ClusterName) {
	if m.states[name] == gateUnknown && m.flying(name) == 0 {
		m.windows[name] = 1
		delete(m.until, name)
	}
}

func (m *model) flying(name mcr.ClusterName) int {
	flying := 0
	for item := range m.inFlight {
		if item.ClusterName == name {
			flying++
		}
	}
	return flying
}

// hung reduces a cluster to one item in flight, and sets its penalty.
func (m *model) hung(name mcr.ClusterName, started time.Time, took time.Duration) {
	m.windows[name] = 1
	if until := started.Add(took + min(4*took, 2*time.Minute)); until.After(m.until[name]) {
		m.until[name] = until
	}
}

// first returns the item that has to be served next for a cluster.
func (m *model) first(name mcr.ClusterName) (mcreconcile.Request, bool) {
	for item, started := range m.inFlight {
		if item.ClusterName == name && name != hub && m.clock.Since(started) >= 2*time.Second {
			m.hung(name, started, 2*time.Second)
		}
	}
	if m.states[name] != gateOpen || m.flying(name) >= m.windows[name] {
		return mcreconcile.Request{}, false
	}
	item, some := m.best(name, func(priority int) bool { return priority > 0 })
	rest, others := m.best(name, func(priority int) bool { return priority <= 0 })
	if some && (m.ahead[name] < aheadInARow || !others) {
		return item, true
	}
	return rest, others
}

// best is the first of a cluster's items that are ready and have one of some priorities.
func (m *model) best(name mcr.ClusterName, of func(priority int) bool) (best mcreconcile.Request, some bool) {
	var bestItem *modelItem
	for item, it := range m.queued {
		if _, busy := m.inFlight[item]; item.ClusterName != name || !it.due || busy || !of(it.priority) {
			continue
		}
		if bestItem == nil || it.priority > bestItem.priority || it.priority == bestItem.priority && it.seq < bestItem.seq {
			best, bestItem = item, it
		}
	}
	return best, bestItem != nil
}

func (m *model) get() {
	want := map[mcr.ClusterName]mcreconcile.Request{}
	for name := range m.limits {
		if item, ok := m.first(name); ok {
			want[name] = item
		}
	}
	if has := m.q.next() != nil; has != (len(want) > 0) {
		m.t.Fatalf("the queue has work: %v; the model can serve %v", has, want)
	}
	if len(want) == 0 {
		return
	}
	got, priority, _ := m.q.GetWithPriority()
	expected, ok := want[got.ClusterName]
	if !ok || expected != got {
		m.t.Fatalf("got %v; the model can serve %v", got, want)
	}
	if p := m.queued[got].priority; p != priority {
		m.t.Fatalf("%v: want priority %d, got %d", got, p, priority)
	}
	m.ahead[got.ClusterName]++
	if priority <= 0 {
		m.ahead[got.ClusterName] = 0
	}
	delete(m.queued, got)
	m.inFlight[got] = m.clock.Now()
	m.order = append(m.order, got)
	for name := range want {
		m.passed[name]++
		// The lanes take turns, so that a lane with a single cluster can have every other turn.
		if m.passed[name] > 2*len(m.limits) {
			m.t.Fatalf("cluster %q was passed over %d times while it could have been served", name, m.passed[name])
		}
	}
	m.passed[got.ClusterName] = 0
}

func (m *model) done(i int) {
	if len(m.order) == 0 {
		return
	}
	i %= len(m.order)
	item := m.order[i]
	m.order = append(m.order[:i], m.order[i+1:]...)
	took := m.clock.Since(m.inFlight[item])
	switch name := item.ClusterName; {
	case name == hub:
	case took >= 2*time.Second:
		m.hung(name, m.inFlight[item], took)
	case !m.clock.Now().Before(m.until[name]):
		m.windows[name] = min(m.limits[name], 2*m.windows[name])
	}
	delete(m.inFlight, item)
	m.forget(item.ClusterName)
	m.q.Done(item)
}

func (m *model) check() {
	due := 0
	for _, it := range m.queued {
		if it.due {
			due++
		}
	}
	if got := m.q.Len(); got != due {
		m.t.Fatalf("Len: want %d, got %d", due, got)
	}
	if got := m.q.waiting.len(); got != len(m.queued)-due {
		m.t.Fatalf("delayed: want %d, got %d", len(m.queued)-due, got)
	}
}

// run interprets bytes as operations.
func (m *model) run(ops []byte) {
	clusters := []mcr.ClusterName{hub, "a", "b", "c"}
	for len(ops) >= 2 {
		op, arg := ops[0], int(ops[1])
		ops = ops[2:]
		name := clusters[arg%4]
		item := request(name, fmt.Sprint(arg/4%8))
		switch op % 16 {
		case 0, 1, 2, 3:
			m.add(item, 0, 0)
		case 4:
			m.add(item, -100, 0)
		case 5:
			m.add(item, arg%3, 0)
		case 6, 7:
			m.add(item, arg%2, time.Duration(arg)*time.Second)
		case 8, 9, 10:
			m.get()
		case 11, 12:
			m.done(arg)
		case 13:
			m.step(time.Duration(arg) * time.Second)
		case 14:
			if name != hub {
				m.set(name, gateOpen)
			}
		case 15:
			if name != hub {
				m.set(name, gateState(arg/4%2))
			}
		}
		m.check()
	}
	m.finish()
}

// finish serves all that is left: nothing may be lost.
func (m *model) finish() {
	for name := range m.limits {
		if m.states[name] == gateClosed {
			m.set(name, gateOpen)
		}
	}
	m.step(time.Hour)
	for len(m.queued) > 0 || len(m.order) > 0 {
		before := len(m.queued)
		m.get()
		if len(m.queued) == before && len(m.order) == 0 {
			m.t.Fatalf("%d items are never served", before)
		}
		m.done(0)
		m.check()
	}
	for name, sub := range m.q.subs {
		if sub.inFlight != 0 || len(sub.entries) != 0 || sub.behind != 0 || sub.state == gateUnknown {
			m.t.Fatalf("cluster %q is left with %d in flight, %d queued, state %d", name, sub.inFlight, len(sub.entries), sub.state)
		}
	}
}

// TestFairQueueAgainstModel runs many random operations on the queue and on the model, which must agree on every step.
func TestFairQueueAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			ops := make([]byte, 2000)
			for i := range ops {
				ops[i] = byte(r.UintN(256))
			}
			newModel(t).run(ops)
		})
	}
}

func FuzzFairQueueAgainstModel(f *testing.F) {
	f.Add([]byte{14, 1, 0, 1, 8, 0, 0, 1, 15, 1, 14, 1, 11, 0})
	f.Add([]byte{14, 2, 6, 2, 6, 66, 13, 200, 8, 0, 8, 0, 15, 6, 11, 1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		newModel(t).run(ops)
	})
}

// TestFairQueueConcurrently runs workers, feeders and changes of the gate at the same time: nothing is lost, no item is
// processed by two workers, the limit holds, and every cluster is served. It is for the race detector as well.
func TestFairQueueConcurrently(t *testing.T) {
	const (
		workers  = 16
		clusters = 20
		objects  = 25
		rounds   = 20
	)
	g := NewGate()
	q := NewFairQueue("", FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: workers})

	type object struct {
		added, seen atomic.Int64 // Versions of the object.
		busy        atomic.Bool
	}
	objs := map[mcreconcile.Request]*object{}
	busy := map[mcr.ClusterName]*atomic.Int64{}
	for c := range clusters {
		name := mcr.ClusterName(fmt.Sprint(c))
		g.Open(name)
		busy[name] = &atomic.Int64{}
		for o := range objects {
			objs[request(name, fmt.Sprint(o))] = &object{}
		}
	}

	var workersGroup, feeders sync.WaitGroup
	for range workers {
		workersGroup.Go(func() {
			for {
				item, priority, shutdown := q.GetWithPriority()
				if shutdown {
					return
				}
				o := objs[item]
				if o.busy.Swap(true) {
					t.Errorf("%v is with two workers", item)
				}
				if n := busy[item.ClusterName].Add(1); n > workers/4 {
					t.Errorf("cluster %q has %d items in flight", item.ClusterName, n)
				}
				version := o.added.Load()
				if version%7 == 3 && o.seen.Load() < version { // It fails now and then.
					o.seen.Store(version)
					q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, item)
				} else {
					o.seen.Store(version)
					q.Forget(item)
				}
				busy[item.ClusterName].Add(-1)
				o.busy.Store(false)
				q.Done(item)
			}
		})
	}
	for c := range clusters {
		name := mcr.ClusterName(fmt.Sprint(c))
		feeders.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 2))
			for range rounds {
				for o := range objects {
					item := request(name, fmt.Sprint(o))
					objs[item].added.Add(1)
					switch r.IntN(3) {
					case 0:
						q.Add(item)
					case 1:
						q.AddAfter(item, time.Duration(r.IntN(2000))*time.Microsecond)
					case 2:
						low := -100
						q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, item)
					}
				}
				g.Close(name)
				if r.IntN(4) == 0 {
					if err := g.WaitIdle(t.Context(), name); err != nil {
						t.Error(err)
					}
					if n := busy[name].Load(); n != 0 {
						t.Errorf("drained cluster %q has %d items in flight", name, n)
					}
				}
				g.Open(name)
			}
		})
	}
	feeders.Wait()
	for item, o := range objs {
		eventually(t, fmt.Sprintf("the last version of %v is lost", item), func() bool {
			return o.seen.Load() == o.added.Load()
		})
	}
	q.ShutDown()
	workersGroup.Wait()
}
