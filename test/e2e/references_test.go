// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// referencesSample returns the documents of a sample of references.
func referencesSample(name string) []string {
	GinkgoHelper()
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(repository, "config", "samples", "references", name))
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(string(data), "\n---\n")
}

// resolvedFor is what an object reports about its references: "True/Resolved".
func resolvedFor(ctx context.Context, cluster, namespace string) (string, error) {
	return tryGet(ctx, cluster, `{range .status.conditions[?(@.type=="ReferencesResolved")]}{.status}/{.reason}{end}`,
		"caches.database.acmeco.org", "sessions", "--namespace", namespace)
}

var _ = Describe("A composite with references", func() {
	const caches, version = "caches.database.acmeco.org", "{.data.version}"

	It("has the field filled that its composition uses, in a workload cluster and in the hub", func(ctx SpecContext) {
		for _, cluster := range []string{hub, "w1"} {
			Expect(harness.Apply(ctx, fleet, cluster, referencesSample("composite-rights.yaml")[0])).To(Succeed())
			DeferCleanup(func(ctx context.Context) {
				kubectl(ctx, cluster, "delete", "clusterrole", "masthead-references-caches")
			})
		}
		for _, document := range append(referencesSample("composite-api.yaml"), referencesSample("hub-class.yaml")...) {
			Expect(harness.Apply(ctx, fleet, hub, document)).To(Succeed())
		}
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "composition", caches)
			kubectl(ctx, hub, "delete", "compositeresourcedefinition", caches)
			kubectl(ctx, hub, "delete", "enrollmentclass", "hub-references")
		})
		mode := func(ctx context.Context, mode string) {
			kubectl(ctx, hub, "patch", "enrollmentclass", "default", "--type=merge", "-p", `{"spec":{"references":{"mode":"`+mode+`"}}}`)
		}
		mode(ctx, "Enabled")
		DeferCleanup(func(ctx context.Context) { mode(ctx, "Disabled") })
		enrolAll(ctx, "w1")
		sample := referencesSample("composite.yaml")
		cache, configMap, another := sample[0], sample[1], sample[2]

		By("keeping it back as long as what it references is missing")
		Eventually(func() error { return harness.Apply(ctx, fleet, "w1", cache) }).WithContext(ctx).Should(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w1", "delete", caches, "sessions", "pages", "--ignore-not-found")
			kubectl(ctx, "w1", "delete", "configmap", "versions", "--ignore-not-found")
		})
		Eventually(resolvedFor).WithArguments(ctx, "w1", "default").WithContext(ctx).Should(Equal("False/SourceNotFound"))
		Eventually(tryGet).WithArguments(ctx, "w1", `{.status.conditions[?(@.type=="AgentSynced")].reason}`, caches, "sessions").
			WithContext(ctx).Should(Equal("ReferencesUnresolved"))
		Expect(get(ctx, hub, "{.metadata.name}", caches, "sessions", "--namespace", "bar")).To(BeEmpty())
		eventuallySeen(ctx, `masthead_references_objects{reason!="Resolved"} > 0`)
		eventuallySeen(ctx, `masthead:agent_requirements:max{reason!="Synced"} > 0`)

		By("composing it of the value that was filled in")
		Expect(harness.Apply(ctx, fleet, "w1", configMap)).To(Succeed())
		Eventually(resolvedFor).WithArguments(ctx, "w1", "default").WithContext(ctx).Should(Equal("True/Resolved"))
		Eventually(tryGet).WithArguments(ctx, hub, version, "configmap", "sessions-configmap-0", "--namespace", "bar").
			WithContext(ctx).Should(Equal("7.2"))
		Eventually(tryGet).WithArguments(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, caches, "sessions").
			WithContext(ctx).Should(Equal("True"))
		Expect(resolvedFor(ctx, "w1", "default")).To(Equal("True/Resolved"), "the hub's status leaves the condition of references")

		// A rate needs two scrapes.
		eventuallySeen(ctx, `rate(masthead_references_filled_fields_total[8s])`)

		By("doing the same for another one with the same source")
		Expect(harness.Apply(ctx, fleet, "w1", another)).To(Succeed())
		Eventually(tryGet).WithArguments(ctx, hub, version, "configmap", "pages-configmap-0", "--namespace", "bar").
			WithContext(ctx).Should(Equal("7.2"))

		By("doing the same for composites of the hub itself")
		for _, document := range sample {
			Expect(harness.Apply(ctx, fleet, hub, document)).To(Succeed())
		}
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", caches, "sessions", "pages", "--namespace", "default")
			kubectl(ctx, hub, "delete", "configmap", "versions", "--namespace", "default")
		})
		Eventually(resolvedFor).WithArguments(ctx, hub, "default").WithContext(ctx).Should(Equal("True/Resolved"))
		for _, composed := range []string{"sessions-configmap-0", "pages-configmap-0"} {
			Eventually(tryGet).WithArguments(ctx, hub, version, "configmap", composed, "--namespace", "default").
				WithContext(ctx).Should(Equal("7.2"))
		}

		By("leaving alone in the hub what came from a workload cluster")
		Expect(resolvedFor(ctx, hub, "bar")).To(BeEmpty())
	})
})
