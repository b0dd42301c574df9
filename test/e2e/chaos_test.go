// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/load"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// startLoad puts a mixed load on clusters that are enrolled, and sees to it that nothing of it is left after the spec.
func startLoad(ctx context.Context, clusters ...string) *load.Load {
	GinkgoHelper()
	seed := uint64(GinkgoRandomSeed())
	GinkgoWriter.Printf("the load is chosen by the seed %d\n", seed)
	l, err := load.Start(ctx, fleet, "bar", seed, clusters...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		_, _ = l.Stop()
		Expect(l.DeleteAll(ctx)).To(Succeed())
		Eventually(l.Problems).WithContext(ctx).WithTimeout(5*time.Minute).WithPolling(time.Second).
			Should(BeEmpty(), "everything can be deleted")
	})
	return l
}

// settles ends a load and waits until the fleet holds exactly what was asked for.
func settles(ctx context.Context, l *load.Load) {
	GinkgoHelper()
	steps, err := l.Stop()
	Expect(err).NotTo(HaveOccurred(), "the workload clusters did what they were asked for")
	GinkgoWriter.Printf("the load had %d steps\n", steps)
	Expect(steps).To(BeNumerically(">", 50))
	Eventually(l.Problems).WithContext(ctx).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(BeEmpty())
	// What is right stays right: nothing that was left over undoes it.
	Consistently(l.Problems).WithContext(ctx).WithTimeout(3 * time.Second).WithPolling(time.Second).Should(BeEmpty())
}

// launch starts one more manager, which ends with the spec.
func launch(ctx context.Context, flags ...string) *harness.Manager {
	GinkgoHelper()
	kubeconfig, err := harness.ManagerKubeconfig(ctx, fleet)
	Expect(err).NotTo(HaveOccurred())
	m, err := harness.LaunchManager(fleet, kubeconfig, append(managerFlags, flags...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(m.Kill()).To(Succeed()) })
	return m
}

var _ = Describe("Under a mixed load from three clusters", func() {
	It("a manager that is killed at random points, a hundred times, loses and doubles nothing", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2", "w3")
		Expect(manager.Kill()).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			if !manager.Alive() {
				startManager(ctx)
			}
		})
		l := startLoad(ctx, "w1", "w2", "w3")

		kubeconfig, err := harness.ManagerKubeconfig(ctx, fleet)
		Expect(err).NotTo(HaveOccurred())
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 100))
		for range 100 {
			m, err := harness.LaunchManager(fleet, kubeconfig, managerFlags...)
			Expect(err).NotTo(HaveOccurred())
			// Most of the lives are long enough to begin working, some end while the manager starts.
			life := time.NewTimer(time.Duration(random.Int64N(int64(2 * time.Second))))
			select {
			case <-life.C:
			case <-ctx.Done():
			}
			Expect(m.Kill()).To(Succeed())
		}

		startManager(ctx)
		settles(ctx, l)
	})

	It("the hub's API server is restarted, and what was asked for meanwhile follows", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2", "w3")
		l := startLoad(ctx, "w1", "w2", "w3")
		Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", 30))
		Expect(fleet.Kill(ctx, localfleet.HubName)).To(Succeed())
		before := l.Steps()
		Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", before+30), "the workload clusters go on without the hub")
		Expect(fleet.Restart(ctx, localfleet.HubName, localfleet.RestartOptions{})).To(Succeed())
		before = l.Steps()
		Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", before+30))
		settles(ctx, l)
		Expect(manager.Alive()).To(BeTrue(), "the manager does not end because the hub is away for a moment")
	})

	It("a workload cluster's API server freezes and comes back", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2", "w3")
		l := startLoad(ctx, "w1", "w3")
		Expect(fleet.Pause(ctx, "w2")).To(Succeed())
		Eventually(connection).WithArguments(ctx, "w2").WithContext(ctx).Should(Equal("False/DialError"))
		before := l.Steps()
		Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", before+50))
		Expect(fleet.Resume(ctx, "w2")).To(Succeed())
		settles(ctx, l)
		eventuallyConnected(ctx, "w2")
	})

	It("the leader hands over, dies, and hangs until another has taken its place", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2", "w3")
		Expect(manager.Stop(ctx)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			if !manager.Alive() {
				startManager(ctx)
			}
		})
		l := startLoad(ctx, "w1", "w2", "w3")
		election := []string{
			"--leader-elect", "--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s",
		}
		holder := func() string {
			return get(ctx, hub, "{.spec.holderIdentity}", "lease", "masthead-leader", "--namespace", "masthead-system")
		}
		first := launch(ctx, election...)
		Eventually(holder).WithContext(ctx).ShouldNot(BeEmpty())

		By("handing over, as a rollout does")
		led := holder()
		second := launch(ctx, election...)
		Expect(second.WaitReady(ctx)).To(Succeed(), "a replica that waits for the lease is ready")
		Expect(first.Stop(ctx)).To(Succeed())
		Eventually(holder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w1", "handed-over")

		By("losing the leader")
		led = holder()
		third := launch(ctx, election...)
		Expect(third.WaitReady(ctx)).To(Succeed())
		Expect(second.Kill()).To(Succeed())
		Eventually(holder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w2", "leader-lost")

		By("having a leader that hangs: it ends when it finds that it leads no more")
		led = holder()
		fourth := launch(ctx, election...)
		Expect(third.Freeze()).To(Succeed())
		Eventually(holder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w3", "leader-hung")
		Expect(third.Thaw()).To(Succeed())
		Eventually(third.Alive).WithContext(ctx).Should(BeFalse())
		settles(ctx, l)
		Expect(fourth.Stop(ctx)).To(Succeed())
		startManager(ctx) // What cleans up needs one.
	})
})
