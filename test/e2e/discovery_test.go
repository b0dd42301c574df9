// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

const (
	sampleXRD         = "compositemysqlinstances.database.acmeco.org"
	sampleComposition = "mysql.database.acmeco.org"
	readOnlyPolicy    = "masthead-read-only"
)

var _ = Describe("Discovery", func() {
	It("shows what can be claimed, as the seed's User Experience does, and lets no user change it", func(ctx SpecContext) {
		DeferCleanup(func(ctx context.Context) {
			Expect(get(ctx, "w1", "{.metadata.name}", "validatingadmissionpolicybinding", readOnlyPolicy)).To(BeEmpty(), "un-enrolling takes everything back")
			Expect(get(ctx, "w1", "{.metadata.name}", "crd", "compositions.apiextensions.crossplane.io")).To(BeEmpty())
		})
		enrolAll(ctx, "w1")

		By("having the kinds to look at")
		for _, kind := range []string{"compositeresourcedefinitions", "compositions"} {
			Eventually(established).WithArguments(ctx, "w1", kind+".apiextensions.crossplane.io").WithContext(ctx).Should(Equal("True"), kind)
		}

		By("listing the published APIs")
		// Each kind is served a moment after its definition is established.
		Eventually(func() (string, error) {
			return tryGet(ctx, "w1", "{.items[*].metadata.name}", "compositeresourcedefinitions")
		}).WithContext(ctx).Should(ContainSubstring(sampleXRD))
		Eventually(tryGet).WithArguments(ctx, "w1", `{.status.conditions[?(@.type=="Offered")].status}`, "compositeresourcedefinitions", sampleXRD).
			WithContext(ctx).Should(Equal("True"))

		By("seeing the keys of the connection Secret")
		Expect(kubectl(ctx, "w1", "get", "compositeresourcedefinition", sampleXRD, "-o", "yaml")).To(ContainSubstring("connectionSecretKeys"))
		Expect(get(ctx, "w1", "{.spec.connectionSecretKeys}", "xrd", sampleXRD)).
			To(Equal(get(ctx, hub, "{.spec.connectionSecretKeys}", "xrd", sampleXRD)))

		By("listing the Compositions to select from")
		Eventually(tryGet).WithArguments(ctx, "w1", "{.spec.compositeTypeRef.kind}", "compositions", sampleComposition).
			WithContext(ctx).Should(Equal(get(ctx, hub, "{.spec.compositeTypeRef.kind}", "compositions", sampleComposition)))

		By("having an administrator of w1 try to change it")
		rejected := func(args ...string) {
			GinkgoHelper()
			Eventually(func() string {
				_, err := harness.Kubectl(ctx, fleet, "w1", append(args, "--dry-run=server")...)
				if err == nil {
					return ""
				}
				return err.Error()
			}).WithContext(ctx).Should(ContainSubstring("Masthead keeps this as it is in the hub"))
		}
		rejected("label", "composition", sampleComposition, "tier=forged")
		rejected("delete", "composition", sampleComposition)
		rejected("delete", "xrd", "--all")
		rejected("delete", "crd", "compositions.apiextensions.crossplane.io")
		rejected("delete", "crd", "mysqlinstancerequirements.database.acmeco.org")

		By("having them remove the policy: it comes back")
		uid := get(ctx, "w1", "{.metadata.uid}", "validatingadmissionpolicybinding", readOnlyPolicy)
		kubectl(ctx, "w1", "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", readOnlyPolicy)
		Eventually(func() string {
			return get(ctx, "w1", "{.metadata.uid}", "validatingadmissionpolicybinding", readOnlyPolicy)
		}).
			WithContext(ctx).Should(And(Not(BeEmpty()), Not(Equal(uid))))
		rejected("delete", "composition", sampleComposition)

		By("letting Masthead do its work under the policy")
		travels(ctx, "w1", "protected")

		By("publishing another API in the hub, and withdrawing it")
		Expect(harness.Apply(ctx, fleet, hub, passing)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "xrd", "passings.database.acmeco.org", "--ignore-not-found")
		})
		Eventually(func() string { return get(ctx, "w1", "{.spec.names.kind}", "xrd", "passings.database.acmeco.org") }).
			WithContext(ctx).Should(Equal("Passing"))
		kubectl(ctx, hub, "delete", "xrd", "passings.database.acmeco.org")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "xrd", "passings.database.acmeco.org") }).
			WithContext(ctx).Should(BeEmpty())
	})

	It("leaves a cluster with a Crossplane of its own alone", func(ctx SpecContext) {
		removeCopies(ctx, "w2")
		Expect(harness.Apply(ctx, fleet, "w2", ownCrossplane)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w2", "delete", "crd", "compositeresourcedefinitions.apiextensions.crossplane.io")
		})
		enrolAll(ctx, "w2")
		Eventually(func() string {
			return get(ctx, hub, `{.status.conditions[?(@.type=="KindsServed")].message}`, "clusterprofiles", "capi-w2")
		}).WithContext(ctx).Should(ContainSubstring("compositeresourcedefinitions.apiextensions.crossplane.io (OwnCrossplane)"))
		Expect(get(ctx, "w2", "{.metadata.labels}", "crd", "compositeresourcedefinitions.apiextensions.crossplane.io")).To(BeEmpty())
		Expect(get(ctx, "w2", "{.items[*].metadata.name}", "xrd")).To(BeEmpty())
		Expect(get(ctx, "w2", "{.metadata.name}", "crd", "compositions.apiextensions.crossplane.io")).To(BeEmpty())
	})
})

// removeCopies removes the copies of Crossplane's kinds, as the administrator of a cluster that is not enrolled does.
func removeCopies(ctx context.Context, cluster string) {
	GinkgoHelper()
	kubectl(ctx, cluster, "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", readOnlyPolicy, "--ignore-not-found")
	for _, resource := range []string{"compositeresourcedefinitions", "compositions"} {
		removeDefinition(ctx, cluster, resource+".apiextensions.crossplane.io")
	}
}

// removeDefinition deletes a definition from a cluster that is not enrolled any more. Its API server still rejects that
// for a moment after the deletion of the policy, regardless of who deleted it: it checks the policies once a second.
func removeDefinition(ctx context.Context, cluster, crd string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := harness.Kubectl(ctx, fleet, cluster, "delete", "crd", crd, "--ignore-not-found")
		return err
	}).WithContext(ctx).Should(Succeed())
}

const passing = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: passings.database.acmeco.org}
spec:
  group: database.acmeco.org
  names: {kind: Passing, plural: passings}
  versions:
  - name: v1alpha1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`

const ownCrossplane = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: compositeresourcedefinitions.apiextensions.crossplane.io}
spec:
  group: apiextensions.crossplane.io
  scope: Cluster
  names: {kind: CompositeResourceDefinition, plural: compositeresourcedefinitions, shortNames: [xrd, xrds]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
