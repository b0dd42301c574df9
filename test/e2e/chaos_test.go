// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/load"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// startLoad puts a mixed load on enrolled clusters, and removes all of it after the spec.
func startLoad(ctx context.Context, clusters ...string) *load.Load {
	GinkgoHelper()
	seed := uint64(GinkgoRandomSeed())
	GinkgoWriter.Printf("the load is chosen by the seed %d\n", seed)
	l, err := load.Start(ctx, fleet, "bar", seed, clusters...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		defer l.Close()
		_, _ = l.Stop()
		Expect(l.DeleteAll(ctx)).To(Succeed())
		Eventually(l.Problems).WithContext(ctx).WithTimeout(5*time.Minute).WithPolling(time.Second).
			Should(BeEmpty(), "everything can be deleted")
	})
	return l
}

// goesOn waits until the load has had more steps.
func goesOn(ctx context.Context, l *load.Load) {
	GinkgoHelper()
	before := l.Steps()
	Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", before+30))
}

// settlesJudged is settles, and no operation on a name may have been missed, so that the whole history was judged.
func settlesJudged(ctx context.Context, l *load.Load) {
	GinkgoHelper()
	settles(ctx, l)
	_, complete := l.Operations()
	Expect(complete).To(BeTrue(), "the history of names is judged")
}

// settles ends a load and waits until the fleet contains exactly what was requested.
func settles(ctx context.Context, l *load.Load) {
	GinkgoHelper()
	steps, err := l.Stop()
	Expect(err).NotTo(HaveOccurred(), "the operations in the workload clusters succeeded")
	Expect(steps).To(BeNumerically(">", 50))
	Eventually(l.Problems).WithContext(ctx).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(BeEmpty())
	// The state stays right: no work that was left over undoes it.
	Consistently(l.Problems).WithContext(ctx).WithTimeout(3 * time.Second).WithPolling(time.Second).Should(BeEmpty())
	// Not before: on a busy machine a manager that is killed again and again may have written nothing until now.
	operations, complete := l.Operations()
	GinkgoWriter.Printf("the load had %d steps, and %d operations on names, of which none was missed: %t\n", steps, operations, complete)
	Expect(operations).To(BeNumerically(">", 0), "the history of names is recorded")
}

// election are the flags with which replicas elect a leader, a little faster than by default. A leader must not lose
// its lease because the machine is busy.
var election = []string{
	"--leader-elect", "--leader-elect-lease-duration=" + leaseDuration.String(), "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=1s",
}

const leaseDuration = 12 * time.Second

// leaseHolder is the replica that leads, or "".
func leaseHolder(ctx context.Context) string {
	GinkgoHelper()
	return get(ctx, hub, "{.spec.holderIdentity}", "lease", "masthead-leader", "--namespace", "masthead-system")
}

var _ = Describe("Under a mixed load from all clusters", func() {
	It("a manager that is killed at random points, again and again, loses and doubles nothing", secondFleet, func(ctx SpecContext) {
		enrolAll(ctx, workloads...)
		Expect(manager.Kill(ctx)).To(Succeed())
		l := startLoad(ctx, workloads...)

		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 100))
		for i := range kills {
			Expect(manager.Launch(ctx)).To(Succeed())
			// In some cases the manager is killed while it starts; in a tenth it has begun its work, on any machine.
			if i%10 == 0 {
				before, _ := l.Operations()
				Eventually(func() int { n, _ := l.Operations(); return n }).WithContext(ctx).Should(BeNumerically(">", before))
			}
			life := time.NewTimer(time.Duration(random.Int64N(int64(longestLife))))
			select {
			case <-life.C:
			case <-ctx.Done():
			}
			Expect(manager.Kill(ctx)).To(Succeed())
		}

		startManager(ctx)
		settlesJudged(ctx, l)
	})

	It("the hub's API server is restarted, and what was requested meanwhile follows", secondFleet, needs(localProcesses,
		"kills the API server of the hub and nothing beside it"), func(ctx SpecContext) {
		enrolAll(ctx, workloads...)
		l := startLoad(ctx, workloads...)
		goesOn(ctx, l)
		Expect(fleet.Kill(ctx, localfleet.HubName)).To(Succeed())
		goesOn(ctx, l) // The workload clusters work without the hub.
		Expect(fleet.Restart(ctx, localfleet.HubName)).To(Succeed())
		goesOn(ctx, l)
		alive := func() bool { return manager.Alive(ctx) }
		Consistently(alive).WithContext(ctx).WithTimeout(5*time.Second).
			Should(BeTrue(), "the manager does not end because the hub is away for a moment")
		settles(ctx, l)
		Expect(alive()).To(BeTrue())
	})

	It("a workload cluster's API server freezes and comes back", secondFleet, func(ctx SpecContext) {
		enrolAll(ctx, workloads...)
		l := startLoad(ctx, others("w2")...)
		Expect(fleet.Pause(ctx, "w2")).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(fleet.Resume(ctx, "w2")).To(Succeed()) })
		Eventually(connection).WithArguments(ctx, "w2").WithContext(ctx).Should(Equal("False/DialError"))
		before := l.Steps()
		Eventually(l.Steps).WithContext(ctx).Should(BeNumerically(">", before+50))
		Expect(fleet.Resume(ctx, "w2")).To(Succeed())
		settlesJudged(ctx, l)
		eventuallyConnected(ctx, "w2")
	})

	It("the leader hands over, dies, and hangs until another has taken its place", secondFleet, needs(localProcesses,
		"starts replicas one by one and freezes one"), func(ctx SpecContext) {
		enrolAll(ctx, workloads...)
		Expect(manager.Stop(ctx)).To(Succeed())
		l := startLoad(ctx, workloads...)
		first := launch(ctx, election...)
		Eventually(leaseHolder).WithContext(ctx).ShouldNot(BeEmpty())

		By("handing over, as a rollout does")
		led := leaseHolder(ctx)
		second := launch(ctx, election...)
		Expect(second.WaitReady(ctx)).To(Succeed(), "a replica that waits for the lease is ready")
		Expect(first.Stop(ctx)).To(Succeed())
		Eventually(leaseHolder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w1", "handed-over")

		By("losing the leader")
		led = leaseHolder(ctx)
		third := launch(ctx, election...)
		Expect(third.WaitReady(ctx)).To(Succeed())
		Expect(second.Kill()).To(Succeed())
		Eventually(leaseHolder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w2", "leader-lost")

		By("having a leader that hangs: it ends when it finds that it leads no more")
		led = leaseHolder(ctx)
		fourth := launch(ctx, election...)
		Expect(third.Freeze()).To(Succeed())
		Eventually(leaseHolder).WithContext(ctx).ShouldNot(BeElementOf("", led))
		travels(ctx, "w3", "leader-hung")
		Expect(third.Thaw()).To(Succeed())
		Eventually(third.Alive).WithContext(ctx).Should(BeFalse())
		settlesJudged(ctx, l)
		Expect(fourth.Stop(ctx)).To(Succeed())
	})

	It("a leader that hung while another took the lease changes nothing any more when it goes on", needs(localProcesses,
		"freezes the process that leads"), func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		Expect(manager.Stop(ctx)).To(Succeed())
		late := launch(ctx, election...)
		Eventually(leaseHolder).WithContext(ctx).ShouldNot(BeEmpty())
		travels(ctx, "w1", "of-the-leader")

		Expect(late.Freeze()).To(Succeed())
		// The lease has expired when it has not been renewed for its duration. The spec acquires it, as another replica
		// would.
		renewed := get(ctx, hub, "{.spec.renewTime}", "lease", "masthead-leader", "--namespace", "masthead-system")
		last, err := time.Parse(time.RFC3339Nano, renewed)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() time.Duration { return time.Since(last) }).WithContext(ctx).Should(BeNumerically(">", leaseDuration))
		kubectl(ctx, hub, "patch", "lease", "masthead-leader", "--namespace", "masthead-system", "--type=merge", "-p", fmt.Sprintf(
			`{"spec":{"holderIdentity":"another","leaseDurationSeconds":60,"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")))
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "lease", "masthead-leader", "--namespace", "masthead-system")
		})
		claim(ctx, "w1", "unseen-by-the-leader")
		DeferCleanup(cleanClaim, "w1", "unseen-by-the-leader")
		deleteClaim(ctx, "w1", "of-the-leader")

		Expect(late.Thaw()).To(Succeed())
		Eventually(late.Alive).WithContext(ctx).Should(BeFalse(), "it ends when it finds that it leads no more")
		Expect(get(ctx, "w1", "{.metadata.finalizers}{.status.conditions}", "mysqlinstancerequirements", "unseen-by-the-leader")).To(BeEmpty(),
			"it has not begun to work for a claim")
		Expect(sourceInHub(ctx, "unseen-by-the-leader")).To(BeEmpty())
		Expect(get(ctx, "w1", "{.metadata.finalizers}", "mysqlinstancerequirements", "of-the-leader")).NotTo(BeEmpty(), "it lets no claim go")
		Expect(get(ctx, hub, "{.metadata.deletionTimestamp}", "mysqlinstancerequirements", "of-the-leader", "--namespace", "bar")).To(BeEmpty(),
			"it deletes nothing")
	})
})
