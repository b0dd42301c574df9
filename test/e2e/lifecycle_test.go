// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

const requirements = "mysqlinstancerequirements"

// uidInHub is the UID of the requirement's object in the hub, or "" if there is none.
func uidInHub(ctx context.Context, name string) string {
	GinkgoHelper()
	return get(ctx, hub, "{.metadata.uid}", requirements, name, "--namespace", "bar")
}

// exists is the name of a requirement in a workload cluster, or "" if there is none.
func exists(ctx context.Context, cluster, name string) string {
	GinkgoHelper()
	return get(ctx, cluster, "{.metadata.name}", requirements, name)
}

var _ = Describe("The life of a requirement", secondFleet, func() {
	It("shows what Crossplane fills in late, and has no conflicts with other writers", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "late")
		composite := func(cluster string, args ...string) string {
			return get(ctx, cluster, "{.spec.resourceRef.name}/{.spec.compositionRef.name}", append([]string{requirements, "late"}, args...)...)
		}
		Eventually(func() string { return composite(hub, "--namespace", "bar") }).WithContext(ctx).Should(MatchRegexp(`.+/.+`))
		Eventually(func() string { return composite("w1") }).WithContext(ctx).Should(Equal(composite(hub, "--namespace", "bar")))

		By("applying the user's manifest again: nothing is taken from it, and nothing is removed")
		claim(ctx, "w1", "late")
		Consistently(func() string { return composite("w1") }, "2s").WithContext(ctx).Should(Equal(composite(hub, "--namespace", "bar")))
		eventuallyReady(ctx, "late")
		generation := get(ctx, hub, "{.metadata.generation}", requirements, "late", "--namespace", "bar")

		By("restarting the manager: what was filled in is not taken for the user's wish")
		restartManager(ctx)
		eventuallyConnected(ctx, "w1")
		travels(ctx, "w1", "after")
		Expect(get(ctx, hub, "{.metadata.generation}", requirements, "late", "--namespace", "bar")).To(Equal(generation))
	})

	It("ends without a trace in the cluster when the cluster is un-enrolled, and goes on when it is back", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "stays")
		uid := uidInHub(ctx, "stays")
		Expect(get(ctx, "w1", "{.metadata.finalizers}", requirements, "stays")).To(ContainSubstring("agent.masthead.dev/requirement"))

		unenrol(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(BeEmpty())
		Expect(get(ctx, "w1", "{.metadata.finalizers}", requirements, "stays")).To(BeEmpty())
		kubectl(ctx, "w1", "delete", requirements, "stays", "--timeout=20s")
		Expect(uidInHub(ctx, "stays")).To(Equal(uid))

		By("enrolling it again: a requirement of that name takes over what is there")
		enrol(ctx, "w1")
		eventuallyConnected(ctx, "w1")
		claim(ctx, "w1", "stays")
		Eventually(agentSynced).WithArguments(ctx, "w1", "stays").WithContext(ctx).Should(Equal("True/Synced"))
		Expect(uidInHub(ctx, "stays")).To(Equal(uid))
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "secret", "stays-creds") }).
			WithContext(ctx).Should(Equal("stays-creds"))
	})

	It("ends with its namespace", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		kubectl(ctx, "w1", "create", "namespace", "doomed")
		Expect(harness.Apply(ctx, fleet, "w1", `
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: doomed, namespace: doomed}
spec: {version: "5.7", storageGB: 20, writeConnectionSecretToRef: {name: doomed-creds}}
`)).To(Succeed())
		Eventually(sourceInHub).WithArguments(ctx, "doomed").WithContext(ctx).Should(HaveSuffix("/doomed"))
		kubectl(ctx, "w1", "delete", "namespace", "doomed", "--wait=false")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "namespace", "doomed") }).WithContext(ctx).Should(BeEmpty())
		Expect(sourceInHub(ctx, "doomed")).To(BeEmpty())
	})

	It("can end without that of its infrastructure, which is adopted with the hub's consent only", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		claim(ctx, "w1", "kept", "agent.masthead.dev/deletion-policy", "Orphan")
		DeferCleanup(func(ctx context.Context) {
			cleanClaim(ctx, "w1", "kept")
			kubectl(ctx, hub, "delete", requirements, "kept", "--namespace", "bar", "--ignore-not-found", "--wait=false")
			Eventually(uidInHub).WithArguments(ctx, "kept").WithContext(ctx).Should(BeEmpty())
		})
		Eventually(agentSynced).WithArguments(ctx, "w1", "kept").WithContext(ctx).Should(Equal("True/Synced"))
		uid := uidInHub(ctx, "kept")
		deleteClaim(ctx, "w1", "kept")
		Eventually(exists).WithArguments(ctx, "w1", "kept").WithContext(ctx).Should(BeEmpty())
		Expect(uidInHub(ctx, "kept")).To(Equal(uid))
		identifier := get(ctx, "w1", "{.metadata.uid}", "namespace", "kube-system")
		Expect(get(ctx, hub, `{.metadata.annotations.agent\.masthead\.dev/released-from}`, requirements, "kept", "--namespace", "bar")).
			To(Equal(identifier + "/default"))

		claim(ctx, "w1", "kept")
		Eventually(agentSynced).WithArguments(ctx, "w1", "kept").WithContext(ctx).Should(Equal("False/Conflict"))
		kubectl(ctx, hub, "annotate", requirements, "kept", "--namespace", "bar", "agent.masthead.dev/adoptable-by="+identifier+"/default")
		Eventually(agentSynced).WithArguments(ctx, "w1", "kept").WithContext(ctx).Should(Equal("True/Synced"))
		Expect(uidInHub(ctx, "kept")).To(Equal(uid))
	})
})
