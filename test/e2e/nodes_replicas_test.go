// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/load"
)

// eventuallyLeads waits until a Pod leads that is not the previous leader.
func eventuallyLeads(ctx context.Context, other string) {
	GinkgoHelper()
	Eventually(asPods.Leader).WithArguments(ctx).WithContext(ctx).ShouldNot(BeElementOf("", other))
}

// mustLead is the Pod that leads.
func mustLead(ctx context.Context) string {
	GinkgoHelper()
	var name string
	Eventually(func(g Gomega) {
		found, err := asPods.Leader(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tryGet(ctx, hub, "{.metadata.name}", "pod", found, "--namespace", ownNamespace)).NotTo(BeEmpty())
		name = found
	}).WithContext(ctx).Should(Succeed())
	return name
}

// nodeOf is the node of one of Masthead's Pods.
func nodeOf(ctx context.Context, pod string) string {
	GinkgoHelper()
	return get(ctx, hub, "{.spec.nodeName}", "pod", pod, "--namespace", ownNamespace)
}

// eventuallyTwo waits until there are two replicas, ready, and nothing else.
func eventuallyTwo(ctx context.Context) {
	GinkgoHelper()
	Eventually(asPods.Alive).WithArguments(ctx).WithContext(ctx).Should(BeTrue())
}

// leadOn moves the leader to one node, and the other replica to the other one. Earlier specs may have left both
// replicas on the same node.
func leadOn(ctx context.Context, node, other string) {
	GinkgoHelper()
	only := func(node, other string) {
		kubectl(ctx, hub, "uncordon", node)
		kubectl(ctx, hub, "cordon", other)
	}
	for _, node := range hubNodes() {
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, hub, "uncordon", node) })
	}
	By("having both replicas on the leader's node to be")
	only(node, other)
	for _, pod := range replicaNames(ctx) {
		if nodeOf(ctx, pod) == other {
			kubectl(ctx, hub, "delete", "pod", pod, "--namespace", ownNamespace)
		}
	}
	eventuallyTwo(ctx)
	By("moving the one that does not lead")
	only(other, node)
	led := mustLead(ctx)
	for _, pod := range replicaNames(ctx) {
		if pod != led {
			kubectl(ctx, hub, "delete", "pod", pod, "--namespace", ownNamespace)
		}
	}
	eventuallyTwo(ctx)
	kubectl(ctx, hub, "uncordon", node)
}

// replicaNames are the names of the manager's Pods.
func replicaNames(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(get(ctx, hub, "{.items[*].metadata.name}", "pods", podsOfMasthead, "--namespace", ownNamespace))
}

// loadOnTwo waits until there are two replicas, and puts a mixed load on two clusters.
func loadOnTwo(ctx context.Context) *load.Load {
	GinkgoHelper()
	eventuallyTwo(ctx)
	enrolAll(ctx, "w1", "w2")
	l := startLoad(ctx, "w1", "w2")
	goesOn(ctx, l)
	return l
}

var _ = Describe("With two replicas and under a mixed load", needs(kindClusters, "has replicas as Pods of nodes"), func() {
	It("the leader's Pod is deleted at once, and then its process is killed: nothing is lost or doubled", func(ctx SpecContext) {
		l := loadOnTwo(ctx)

		By("deleting the Pod without giving it time to end")
		led := mustLead(ctx)
		kubectl(ctx, hub, "delete", "pod", led, "--namespace", ownNamespace, "--grace-period=0", "--force")
		eventuallyLeads(ctx, led)
		eventuallyTwo(ctx)
		goesOn(ctx, l)

		By("killing the process, which the kubelet starts again")
		led = mustLead(ctx)
		_, err := inKind.Exec(ctx, nodeOf(ctx, led), "kill -KILL $(pgrep -x manager)")
		Expect(err).NotTo(HaveOccurred())
		Eventually(tryGet).WithArguments(ctx, hub, "{.status.containerStatuses[0].restartCount}", "pod", led, "--namespace", ownNamespace).
			WithContext(ctx).Should(Equal("1"))
		eventuallyTwo(ctx)
		mustLead(ctx)
		goesOn(ctx, l)
		settles(ctx, l)
	})

	It("the leader's node loses its kubelet, and then hangs until another replica has taken its place", func(ctx SpecContext) {
		eventuallyTwo(ctx)
		worker := hubNodes()[1]
		leadOn(ctx, worker, hubNodes()[0])
		led := mustLead(ctx)
		Expect(nodeOf(ctx, led)).To(Equal(worker))
		l := loadOnTwo(ctx)

		By("stopping the kubelet: the leader goes on, although its node is not ready")
		_, err := inKind.Exec(ctx, worker, "systemctl stop kubelet")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			_, err := inKind.Exec(ctx, worker, "systemctl start kubelet")
			Expect(err).NotTo(HaveOccurred())
			eventuallyTwo(ctx)
		})
		Eventually(tryGet).WithArguments(ctx, hub, `{.status.conditions[?(@.type=="Ready")].status}`, "node", worker).WithContext(ctx).
			Should(Equal("Unknown"))
		goesOn(ctx, l)
		travels(ctx, "w1", "without-kubelet")
		Expect(asPods.Leader(ctx)).To(Equal(led))

		By("freezing the node")
		Expect(inKind.PauseNode(ctx, worker)).To(Succeed())
		resumed := false
		DeferCleanup(func(ctx context.Context) {
			if !resumed {
				Expect(inKind.ResumeNode(ctx, worker)).To(Succeed())
			}
		})
		eventuallyLeads(ctx, led)
		travels(ctx, "w1", "node-hung")

		By("going on with it: the one that led ends when it finds that it leads no more")
		now := mustLead(ctx)
		Expect(inKind.ResumeNode(ctx, worker)).To(Succeed())
		resumed = true
		_, err = inKind.Exec(ctx, worker, "systemctl start kubelet")
		Expect(err).NotTo(HaveOccurred())
		eventuallyTwo(ctx)
		Expect(asPods.Leader(ctx)).To(Equal(now))
		settles(ctx, l)
	})

	It("is upgraded and taken back, one replica after the other, and nothing is lost or doubled", func(ctx SpecContext) {
		l := loadOnTwo(ctx)
		for _, tag := range []string{nextTag, version()} {
			Expect(asPods.Install(ctx, "image.tag="+tag)).To(Succeed())
			eventuallyTwo(ctx)
			Expect(get(ctx, hub, "{.items[*].spec.containers[0].image}", "pods", podsOfMasthead, "--namespace", ownNamespace)).
				To(Equal(imageName + ":" + tag + " " + imageName + ":" + tag))
			mustLead(ctx)
			goesOn(ctx, l)
		}
		settles(ctx, l)
	})

	It("its nodes are drained one after the other, and a replica is always there", func(ctx SpecContext) {
		l := loadOnTwo(ctx)
		worker := hubNodes()[1]
		kubectl(ctx, hub, "drain", worker, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=app.kubernetes.io/name=masthead", "--timeout=2m")
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, hub, "uncordon", worker) })
		eventuallyTwo(ctx)
		By("refusing to have both evicted at once")
		kubectl(ctx, hub, "cordon", hubNodes()[0])
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, hub, "uncordon", hubNodes()[0]) })
		pods := strings.Fields(get(ctx, hub, "{.items[*].metadata.name}", "pods", podsOfMasthead, "--namespace", ownNamespace))
		Expect(evict(ctx, pods[0])).To(Succeed())
		Eventually(evict).WithArguments(ctx, pods[1]).WithContext(ctx).Should(MatchError(ContainSubstring("disruption budget")))
		kubectl(ctx, hub, "uncordon", worker)
		eventuallyTwo(ctx)
		goesOn(ctx, l)
		settles(ctx, l)
	})

	It("every replica is over its limit of memory and is killed, again and again, and nothing is lost or doubled", func(ctx SpecContext) {
		l := loadOnTwo(ctx)
		// All at once, because a rollout would keep the replicas that work.
		Expect(asPods.Install(ctx, "replicas=0")).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(asPods.Install(ctx)).To(Succeed())
			eventuallyTwo(ctx)
		})
		Expect(asPods.Upgrade(ctx, "resources.requests.memory=8Mi", "resources.limits.memory="+tooLittle)).To(Succeed())
		Eventually(tryGet).WithArguments(ctx, hub, "{.items[*].status.containerStatuses[*].lastState.terminated.reason}",
			"pods", podsOfMasthead, "--namespace", ownNamespace).WithContext(ctx).Should(ContainSubstring("OOMKilled"))
		Eventually(func() (string, error) {
			return tryGet(ctx, hub, "{.items[*].status.containerStatuses[*].restartCount}", "pods", podsOfMasthead, "--namespace", ownNamespace)
		}).WithContext(ctx).Should(MatchRegexp(`[2-9]`))
		goesOn(ctx, l)

		By("giving it what it needs")
		Expect(asPods.Install(ctx)).To(Succeed())
		eventuallyTwo(ctx)
		goesOn(ctx, l)
		settles(ctx, l)
	}, NodeTimeout(10*time.Minute))
})

// tooLittle is a memory limit with which a manager begins its work and is killed; with 32Mi it serves both clusters.
const tooLittle = "16Mi"

// evict requests the eviction of one of Masthead's Pods, as kubectl drain does.
func evict(ctx context.Context, pod string) error {
	_, err := inKind.Evict(ctx, hub, ownNamespace, pod)
	return err
}
