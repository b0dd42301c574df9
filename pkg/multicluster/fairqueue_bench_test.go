// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// BenchmarkQueue passes one item through a queue that has 10,000 more, spread over the clusters, and compares the fair
// queue with controller-runtime's.
func BenchmarkQueue(b *testing.B) {
	const queued = 10_000
	queues := map[string]func() priorityqueue.PriorityQueue[mcreconcile.Request]{
		"Upstream": func() priorityqueue.PriorityQueue[mcreconcile.Request] {
			return priorityqueue.New[mcreconcile.Request]("")
		},
		"Fair": func() priorityqueue.PriorityQueue[mcreconcile.Request] {
			return NewFairQueue("", FairQueueOptions[mcreconcile.Request]{Workers: 8})
		},
	}
	for _, clusters := range []int{1, 100, 1000} {
		items := make([]mcreconcile.Request, queued)
		for i := range items {
			items[i] = request(mcr.ClusterName(fmt.Sprint(i%clusters)), fmt.Sprint(i))
		}
		for name, newQueue := range queues {
			b.Run(fmt.Sprintf("%s/clusters=%d", name, clusters), func(b *testing.B) {
				q := newQueue()
				defer q.ShutDown()
				for _, item := range items {
					q.Add(item)
				}
				b.ReportAllocs()
				for b.Loop() {
					item, _ := q.Get()
					q.Done(item)
					q.Add(item)
				}
			})
		}
	}
}

// BenchmarkForget measures how long it takes to purge a cluster with 1,000 items, 500 of which are delayed, from a
// queue with 100 others of that kind.
func BenchmarkForget(b *testing.B) {
	g := NewGate()
	q := NewFairQueue("", FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 8})
	defer q.ShutDown()
	fill := func(name mcr.ClusterName) {
		g.Open(name)
		for i := range 500 {
			q.Add(request(name, fmt.Sprint("ready", i)))
			q.AddAfter(request(name, fmt.Sprint("delayed", i)), 1e18)
		}
	}
	for c := range 100 {
		fill(mcr.ClusterName(fmt.Sprint(c)))
	}
	for b.Loop() {
		b.StopTimer()
		fill("x")
		b.StartTimer()
		g.Forget("x")
	}
}
