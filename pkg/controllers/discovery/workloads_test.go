// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// TestEventsOfAClusterAreOnePass has a cluster that does not stop sending events. Before, each of them caused a pass
// over all of its objects, as fast as the workers could.
func TestEventsOfAClusterAreOnePass(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[mcreconcile.Request]{Clock: clk},
	)
	defer queue.ShutDown()
	w := &workload{name: "capi/ns/a", queue: queue}
	for i := range 1000 {
		w.handle(kindwatch.Event{Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint(i)}}}})
	}
	if n := queue.Len(); n != 0 {
		t.Errorf("want events to wait for others, got %d in the queue at once", n)
	}
	// The queue's heartbeat, and the event that it waits for.
	if err := wait.PollUntilContextCancel(t.Context(), time.Millisecond, true, func(context.Context) (bool, error) {
		return clk.Waiters() >= 2, nil
	}); err != nil {
		t.Fatal(err)
	}
	clk.Step(settling)
	item, _ := queue.Get()
	queue.Done(item)
	if n := queue.Len(); item.ClusterName != w.name || n != 0 {
		t.Errorf("want one pass for all of them, got %s and %d more", item, n)
	}
	w.handle(kindwatch.Event{Type: kindwatch.StateChanged})
	if n := queue.Len(); n != 1 {
		t.Errorf("want a kind that is synced to be looked at without delay, got %d in the queue", n)
	}
}
