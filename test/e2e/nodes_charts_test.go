// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The charts", needs(kindClusters, "has Pods and Services and a kubelet"), func() {
	It("run the image as two replicas, one on each node, confined as they say", func(ctx SpecContext) {
		// The replicas are created again, as a rollout can schedule both to one node because there is no third node.
		kubectl(ctx, hub, "wait", "nodes", "--all", "--for=condition=Ready", "--timeout=2m")
		Expect(asPods.Install(ctx, "replicas=0")).To(Succeed())
		Expect(asPods.Install(ctx)).To(Succeed())
		eventuallyTwo(ctx)
		nodes := strings.Fields(get(ctx, hub, "{.items[*].spec.nodeName}", "pods", podsOfMasthead, "--namespace", ownNamespace))
		Expect(nodes).To(ConsistOf(hubNodes()), "the replicas keep away from each other")
		for _, node := range hubNodes() {
			status, err := inKind.Exec(ctx, node, "cat /proc/$(pgrep -x manager)/status")
			Expect(err).NotTo(HaveOccurred())
			for _, line := range []string{"Uid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
				Expect(status).To(ContainSubstring(line))
			}
			root, err := inKind.Exec(ctx, node, "awk '$2 == \"/\" {print $4}' /proc/$(pgrep -x manager)/mounts")
			Expect(err).NotTo(HaveOccurred())
			Expect(root).To(HavePrefix("ro,"), "nothing can be written to its root")
		}
		By("being found alive and ready by the kubelet, without a restart")
		Expect(get(ctx, hub, "{.items[*].status.containerStatuses[*].restartCount}", "pods", podsOfMasthead, "--namespace", ownNamespace)).
			To(Equal("0 0"))
		By("bringing a NetworkPolicy and a PodDisruptionBudget that the cluster accepts")
		Expect(get(ctx, hub, "{.spec.policyTypes}", "networkpolicy", "masthead", "--namespace", ownNamespace)).To(ContainSubstring("Ingress"))
		Eventually(tryGet).WithArguments(ctx, hub, "{.status.currentHealthy}/{.status.expectedPods}/{.status.disruptionsAllowed}",
			"poddisruptionbudget", "masthead", "--namespace", ownNamespace).WithContext(ctx).Should(Equal("2/2/1"))
	})

	It("give its ServiceAccount the rights that it uses, and no others", func(ctx SpecContext) {
		may := func(args ...string) string {
			// kubectl also reports a "no" with its exit status.
			out, _ := inKind.Kubectl(ctx, hub, append([]string{"auth", "can-i", "--as=system:serviceaccount:masthead-system:masthead"}, args...)...)
			return strings.TrimSpace(out)
		}
		for _, right := range []string{"watch clusters.cluster.x-k8s.io", "get secrets", "patch mysqlinstancerequirements.database.acmeco.org", "create tokenreviews.authentication.k8s.io"} {
			Expect(may(append(strings.Fields(right), "--all-namespaces")...)).To(Equal("yes"), right)
		}
		for _, right := range []string{"create secrets", "delete secrets", "create pods", "list pods", "patch clusters.cluster.x-k8s.io", "list nodes", "patch caches.cache.acmeco.org", "impersonate users"} {
			Expect(may(append(strings.Fields(right), "--all-namespaces")...)).To(Or(Equal("no"), BeEmpty()), right)
		}
		By("not being refused anything: by replicas that know of no spec before")
		restartManager(ctx)
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "with-rights")
		logs := kubectl(ctx, hub, "logs", "--namespace", ownNamespace, podsOfMasthead, "--tail=-1")
		Expect(logs).NotTo(ContainSubstring("forbidden"), "it asks for nothing that it may not")
	})

	It("give its metrics to a token that may read them, over the Service, and to no other client", func(ctx SpecContext) {
		kubectl(ctx, hub, "create", "serviceaccount", "prometheus", "--namespace", "default")
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "serviceaccount", "prometheus", "--namespace", "default")
			kubectl(ctx, hub, "delete", "clusterrolebinding", "prometheus", "--ignore-not-found")
		})
		address := get(ctx, hub, "{.spec.clusterIP}", "service", "masthead-metrics", "--namespace", ownNamespace)
		token := strings.TrimSpace(kubectl(ctx, hub, "create", "token", "prometheus", "--namespace", "default"))
		scrape := func(header string) (string, error) {
			return inKind.Exec(ctx, hubNodes()[0], fmt.Sprintf(
				"curl --silent --insecure --max-time 5 --header %q --write-out '%%{http_code}' https://%s:8443/metrics", header, address))
		}
		Expect(scrape("Accept: */*")).To(HaveSuffix("401"))
		Expect(scrape("Authorization: Bearer " + token)).To(HaveSuffix("403"))
		kubectl(ctx, hub, "create", "clusterrolebinding", "prometheus", "--clusterrole=masthead-metrics-reader", "--serviceaccount=default:prometheus")
		// The requests reach the two replicas in turn, and each of them caches its answer for a while.
		Eventually(scrape).WithArguments("Authorization: Bearer " + token).WithContext(ctx).
			Should(And(HaveSuffix("200"), ContainSubstring("\nmasthead_")))
	})
})
