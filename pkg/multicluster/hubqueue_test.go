// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func newHubQueue() priorityqueue.PriorityQueue[int] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](defaultBaseDelay, defaultMaxDelay)
	return NewHubQueue("hub", limiter).(priorityqueue.PriorityQueue[int]) //nolint:forcetypeassert // That is what it is for.
}

// churn runs workers that add and take items, shuts the queue down meanwhile, and returns whether all of them ended.
func churn(q priorityqueue.PriorityQueue[int], patience time.Duration) bool {
	var workers sync.WaitGroup
	var begun sync.WaitGroup
	for worker := range 20 {
		begun.Add(1)
		workers.Go(func() {
			for i := 0; ; i++ {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(i % 3)}, 1000*i+worker)
				item, _, shutdown := q.GetWithPriority()
				if shutdown {
					break
				}
				q.Done(item)
				if i == 10 {
					begun.Done()
				}
			}
		})
	}
	begun.Wait()
	q.ShutDown()
	ended := make(chan struct{})
	go func() {
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

func TestHubQueueEndsItsWorkersAtShutdown(t *testing.T) {
	for range 300 {
		if !churn(newHubQueue(), time.Minute) {
			t.Fatal("a worker is left")
		}
	}
}

func TestHubQueue(t *testing.T) {
	q := newHubQueue()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, 1)
	q.Add(2)
	q.Add(2)
	eventually(t, "what was added is not there", func() bool { return q.Len() == 2 })
	for _, want := range []int{2, 1} {
		item, shutdown := q.Get()
		if item != want || shutdown {
			t.Errorf("want %d, got %d (%t)", want, item, shutdown)
		}
		q.Done(item)
	}

	// An item that is added while it is being processed comes again after Done.
	q.Add(3)
	item, _ := q.Get()
	q.Add(3)
	q.AddAfter(4, time.Millisecond)
	if next, _ := q.Get(); next != 4 {
		t.Errorf("want what nobody works on, got %d", next)
	}
	q.Done(item)
	if again, priority, _ := q.GetWithPriority(); again != 3 || priority != 0 {
		t.Errorf("want it again, got %d with the priority %d", again, priority)
	}

	q.ShutDownWithDrain()
	q.ShutDown()
	q.Done(3)
	q.Add(5)
	if item, shutdown := q.Get(); !shutdown || item != 0 || q.Len() != 0 || !q.ShuttingDown() {
		t.Errorf("want nothing from a queue that was shut down, got %d (%t)", item, shutdown)
	}
}
