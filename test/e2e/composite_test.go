// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

// queueRights are what the manager needs for the kind, on either side.
const queueRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: masthead-e2e-queues
  labels:
    rbac.masthead.dev/aggregate-to-requirements: "true"
    rbac.masthead.dev/aggregate-to-workload-requirements: "true"
rules:
- apiGroups: [database.acmeco.org]
  resources: [queues, queues/status]
  verbs: [get, list, watch, create, patch, delete]
`

// queueAPI is an XRD v2 whose composites compose a Secret.
const queueAPI = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: queues.database.acmeco.org}
spec:
  scope: Namespaced
  group: database.acmeco.org
  names: {kind: Queue, plural: queues}
  defaultCompositionRef: {name: queues.database.acmeco.org}
  versions:
  - name: v1alpha1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {version: {type: string}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: queues.database.acmeco.org}
spec:
  compositeTypeRef: {apiVersion: database.acmeco.org/v1alpha1, kind: Queue}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: localfleet-function}
    input:
      apiVersion: localfleet.masthead.dev/v1alpha1
      kind: Orders
      annotations: {localfleet.masthead.dev/compose-secrets: "1"}
`

const queue = `
apiVersion: database.acmeco.org/v1alpha1
kind: Queue
metadata: {name: jobs, namespace: default}
spec: {version: "1"}
`

var _ = Describe("A namespaced composite", func() {
	It("is provisioned by Crossplane in the hub, and the Secret that it composes arrives, rotates and goes with it", func(ctx SpecContext) {
		for _, cluster := range []string{hub, "w1"} {
			Expect(harness.Apply(ctx, fleet, cluster, queueRights)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { kubectl(ctx, cluster, "delete", "clusterrole", "masthead-e2e-queues") })
		}
		Expect(harness.Apply(ctx, fleet, hub, queueAPI)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "composition", "queues.database.acmeco.org")
			kubectl(ctx, hub, "delete", "compositeresourcedefinition", "queues.database.acmeco.org")
		})
		enrolAll(ctx, "w1")
		Eventually(func() error { return harness.Apply(ctx, fleet, "w1", queue) }).WithContext(ctx).Should(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w1", "delete", "queues.database.acmeco.org", "jobs", "--ignore-not-found")
		})

		By("bringing back the status")
		Eventually(func() string {
			return get(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, "queues.database.acmeco.org", "jobs")
		}).WithContext(ctx).Should(Equal("True"))

		By("bringing the composed Secret, owned by the composite")
		inHub := func() string {
			return get(ctx, hub, "{.data.password}", "secret", "jobs-secret-0", "--namespace", "bar")
		}
		here := func() string { return get(ctx, "w1", "{.data.password}", "secret", "jobs-secret-0") }
		Eventually(inHub).WithContext(ctx).ShouldNot(BeEmpty())
		first := inHub()
		Eventually(here).WithContext(ctx).Should(Equal(first))
		Expect(get(ctx, "w1", "{.metadata.ownerReferences[0].uid}", "secret", "jobs-secret-0")).
			To(Equal(get(ctx, "w1", "{.metadata.uid}", "queues.database.acmeco.org", "jobs")))

		By("rotating it")
		kubectl(ctx, "w1", "patch", "queues.database.acmeco.org", "jobs", "--type=merge", "-p", `{"spec":{"version":"2"}}`)
		Eventually(inHub).WithContext(ctx).ShouldNot(Equal(first))
		Eventually(here).WithContext(ctx).Should(Equal(inHub()))

		By("putting it back when it is deleted")
		kubectl(ctx, "w1", "delete", "secret", "jobs-secret-0")
		Eventually(here).WithContext(ctx).Should(Equal(inHub()))

		By("deleting the composite")
		kubectl(ctx, "w1", "delete", "queues.database.acmeco.org", "jobs")
		Expect(get(ctx, hub, "{.metadata.name}", "queues.database.acmeco.org", "jobs", "--namespace", "bar")).To(BeEmpty())
		Eventually(here).WithContext(ctx).Should(BeEmpty(), "the garbage collector removes the Secret")
	})
})
