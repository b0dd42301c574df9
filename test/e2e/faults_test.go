// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// minWatch is the minimum duration of a WATCH: clients request five to ten minutes.
const minWatch = 5 * time.Minute

// watchesStarted is the number of WATCH requests that the manager has ever sent to a workload cluster.
func watchesStarted(ctx context.Context, name string) float64 {
	GinkgoHelper()
	return metrics(ctx).Value("masthead_cluster_watches_started_total", clusterLabels(name)...)
}

// settledWatches is that number when it has not grown for a while: the watches depend on definitions, which arrive one
// after the other.
func settledWatches(ctx context.Context, name string) float64 {
	GinkgoHelper()
	last, since := -1.0, time.Now()
	Eventually(func() time.Duration {
		if now := watchesStarted(ctx, name); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}).WithContext(ctx).Should(BeNumerically(">", 3*time.Second))
	return last
}

var _ = Describe("A cluster whose API server freezes", func() {
	It("harms no other, shows as Degraded, then Disconnected with a reason, and recovers", func(ctx SpecContext) {
		enrolAll(ctx, workloads...)
		travels(ctx, "w2", "before-freeze")

		Expect(fleet.Pause(ctx, "w2")).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(fleet.Resume(ctx, "w2")).To(Succeed()) })
		Eventually(func() float64 {
			return metrics(ctx).Value("masthead_cluster_state", clusterLabels("w2", "state", "Degraded")...)
		}).WithContext(ctx).Should(Equal(1.0))
		for i := range 5 {
			for _, other := range others("w2") {
				travels(ctx, other, fmt.Sprintf("beside-frozen-%s-%d", other, i))
			}
		}
		Eventually(connection).WithArguments(ctx, "w2").WithContext(ctx).Should(Equal("False/DialError"))
		eventuallyConnected(ctx, others("w2")...)

		Expect(fleet.Resume(ctx, "w2")).To(Succeed())
		eventuallyConnected(ctx, "w2")
		travels(ctx, "w2", "after-freeze")
		eventuallySeen(ctx, `increase(masthead_cluster_connects_total{cluster_name="w2", cause="probe"}[10m]) > 0`)
	})

	It("keeps what was requested while it was away", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "edited")
		Expect(fleet.Kill(ctx, "w1")).To(Succeed())
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(Equal("False/DialError"))
		travels(ctx, "w2", "beside-killed")
		Expect(fleet.Restart(ctx, "w1")).To(Succeed())
		kubectl(ctx, "w1", "patch", "mysqlinstancerequirements", "edited", "--type=merge", "-p", `{"spec":{"storageGB":99}}`)
		eventuallyConnected(ctx, "w1")
		Eventually(func() string {
			return get(ctx, hub, "{.spec.storageGB}", "mysqlinstancerequirements", "edited", "--namespace", "bar")
		}).WithContext(ctx).Should(Equal("99"))
	})
})

var _ = Describe("Credentials that change", secondFleet, func() {
	It("restart no informer when only the token does, twenty times, and lose no event", needs(localProcesses,
		"revokes tokens of the fleet"), func(ctx SpecContext) {
		begun := time.Now()
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "before-rotation")
		before := settledWatches(ctx, "w1")
		// A connection that is made again has any cause but "token"; with that cause, the token is swapped.
		connects := func() float64 {
			m := metrics(ctx)
			return m.Value("masthead_cluster_connects_total", clusterLabels("w1")...) -
				m.Value("masthead_cluster_connects_total", clusterLabels("w1", "cause", "token")...)
		}
		swaps := func() float64 {
			return metrics(ctx).Value("masthead_cluster_connects_total", clusterLabels("w1", "cause", "token")...)
		}
		connectsBefore, swapsBefore := connects(), swaps()
		Expect(before).To(BeNumerically(">", 0))
		for i := range 20 {
			Expect(local.Rotate(ctx, "w1")).To(Succeed())
			Eventually(swaps).WithContext(ctx).Should(Equal(swapsBefore+float64(i)+1), "rotation %d", i+1)
			claim(ctx, "w1", fmt.Sprintf("rotated-%d", i))
		}
		for i := range 20 {
			travels(ctx, "w1", fmt.Sprintf("rotated-%d", i))
		}
		// The watch of a kind that cannot be watched, because another spec has left the cluster without it, is tried again
		// now and then. If each rotation restarted one informer, that would be twenty more watches.
		//
		// A watch that is five minutes old may have ended without a rotation. There were no more such watches than were ever
		// started, and none began before the spec did.
		ended := before * float64(time.Since(begun)/minWatch)
		Expect(watchesStarted(ctx, "w1")).To(BeNumerically("<", before+10+ended), "no rotation had a WATCH sent again")
		Expect(connects()).To(Equal(connectsBefore))
		eventuallyConnected(ctx, "w1")
	})

	It("leave no gap when the endpoint moves", needs(localProcesses,
		"has an API server on two ports"), func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "before-move")

		// This sampler would see a gap: the manager must report all the time that the cluster is connected.
		sampling, stop := context.WithCancel(ctx)
		defer stop()
		var gaps, samples atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-sampling.Done():
					return
				case <-tick.C:
					m, err := manager.Metrics(sampling)
					if err != nil {
						continue
					}
					samples.Add(1)
					if m.Value("masthead_cluster_connected", clusterLabels("w1")...) != 1 {
						gaps.Add(1)
					}
				}
			}
		}()
		endpointConnects := func() float64 {
			return metrics(ctx).Value("masthead_cluster_connects_total", clusterLabels("w1", "cause", "endpoint")...)
		}
		before := endpointConnects()
		stopPrevious, err := local.Move(ctx, "w1")
		Expect(err).NotTo(HaveOccurred())
		claim(ctx, "w1", "during-move")
		Eventually(endpointConnects).WithContext(ctx).Should(Equal(before + 1))
		travels(ctx, "w1", "during-move")
		Expect(stopPrevious(ctx)).To(Succeed())
		travels(ctx, "w1", "after-move")
		stop()
		<-done
		Expect(samples.Load()).To(BeNumerically(">", 0))
		Expect(gaps.Load()).To(BeZero(), "of %d samples", samples.Load())
	})

	It("are followed when the API server died and comes back on another port", needs(localProcesses,
		"has an API server on another port"), func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		Expect(fleet.Kill(ctx, "w1")).To(Succeed())
		Expect(local.Restart(ctx, "w1", localfleet.RestartOptions{NewPort: true})).To(Succeed())
		eventuallyConnected(ctx, "w1")
		travels(ctx, "w1", "on-new-port")
	})
})
