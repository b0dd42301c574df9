// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

var _ = Describe("A requirement", func() {
	It("is provisioned by Crossplane in the hub, its Secret arrives, and its deletion travels", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		claim(ctx, "w1", "sqldb")

		By("pushing it to the class's target namespace, with its source")
		kubeSystem := get(ctx, "w1", "{.metadata.uid}", "namespace", "kube-system")
		Eventually(sourceInHub).WithArguments(ctx, "sqldb").WithContext(ctx).Should(Equal(kubeSystem + "/default"))

		By("bringing back the status")
		Eventually(func() string {
			return get(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, "mysqlinstancerequirements", "sqldb")
		}).WithContext(ctx).Should(Equal("True"))
		Expect(agentSynced(ctx, "w1", "sqldb")).To(Equal("True/Synced"))

		By("bringing back the connection Secret, owned by the requirement")
		Eventually(func() string {
			return get(ctx, "w1", "{.metadata.ownerReferences[0].uid}", "secret", "sqldb-creds")
		}).WithContext(ctx).Should(Equal(get(ctx, "w1", "{.metadata.uid}", "mysqlinstancerequirements", "sqldb")))
		inHub := get(ctx, hub, "{.data.password}", "secret", "sqldb-creds", "--namespace", "bar")
		password, err := base64.StdEncoding.DecodeString(inHub)
		Expect(err).NotTo(HaveOccurred())
		Expect(password).NotTo(BeEmpty())
		Expect(get(ctx, "w1", "{.data.password}", "secret", "sqldb-creds")).To(Equal(inHub))

		By("letting a change of the spec travel")
		kubectl(ctx, "w1", "patch", "mysqlinstancerequirements", "sqldb", "--type=merge", "-p", `{"spec":{"storageGB":40}}`)
		Eventually(func() string {
			return get(ctx, hub, "{.spec.storageGB}", "mysqlinstancerequirements", "sqldb", "--namespace", "bar")
		}).WithContext(ctx).Should(Equal("40"))

		By("deleting it: the finalizer goes when the hub's object is gone, and the Secret goes with the requirement")
		deleteClaim(ctx, "w1", "sqldb")
		Eventually(func() string {
			return get(ctx, "w1", "{.metadata.name}", "mysqlinstancerequirements", "sqldb")
		}).WithContext(ctx).Should(BeEmpty())
		Expect(sourceInHub(ctx, "sqldb")).To(BeEmpty())
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "secret", "sqldb-creds") }).
			WithContext(ctx).Should(BeEmpty(), "the garbage collector removes the Secret")
	})

	It("whose object in the hub belongs to another cluster is refused, and gets its turn when that one goes", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "shared")
		holder := sourceInHub(ctx, "shared")
		eventuallyReady(ctx, "shared")
		version := get(ctx, hub, "{.metadata.generation}", "mysqlinstancerequirements", "shared", "--namespace", "bar")

		claim(ctx, "w2", "shared")
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w2", "shared") })
		Eventually(agentSynced).WithArguments(ctx, "w2", "shared").WithContext(ctx).Should(Equal("False/Conflict"))
		Eventually(func() string {
			return get(ctx, "w2", `{.items[?(@.involvedObject.name=="shared")].reason}`, "events")
		}).WithContext(ctx).Should(ContainSubstring("Conflict"))
		Expect(sourceInHub(ctx, "shared")).To(Equal(holder))
		Expect(get(ctx, hub, "{.metadata.generation}", "mysqlinstancerequirements", "shared", "--namespace", "bar")).To(Equal(version))

		By("deleting the refused one first: the holder's object stays")
		deleteClaim(ctx, "w2", "shared")
		Eventually(func() string { return get(ctx, "w2", "{.metadata.name}", "mysqlinstancerequirements", "shared") }).
			WithContext(ctx).Should(BeEmpty())
		Expect(sourceInHub(ctx, "shared")).To(Equal(holder))

		By("trying again, and deleting the holder")
		claim(ctx, "w2", "shared")
		Eventually(agentSynced).WithArguments(ctx, "w2", "shared").WithContext(ctx).Should(Equal("False/Conflict"))
		deleteClaim(ctx, "w1", "shared")
		Eventually(agentSynced).WithArguments(ctx, "w2", "shared").WithContext(ctx).Should(Equal("True/Synced"))
		Expect(sourceInHub(ctx, "shared")).To(Equal(get(ctx, "w2", "{.metadata.uid}", "namespace", "kube-system") + "/default"))
	})

	// This does not cover a Secret of the type connection.crossplane.io/v1alpha1 that has no controller: Crossplane itself
	// lets a claim that names it take it over and overwrite it.
	It("cannot fetch a Secret of the hub by naming it", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		Expect(harness.Apply(ctx, fleet, hub, `
apiVersion: v1
kind: Secret
metadata: {name: thief-creds, namespace: bar}
stringData: {password: the-platform-teams}
`)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "secret", "thief-creds", "--namespace", "bar")
		})
		kubectl(ctx, "w1", "create", "namespace", "den")
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "w1", "delete", "namespace", "den") })

		By("naming a Secret that is no connection Secret")
		travels(ctx, "w1", "thief")
		By("naming the Secret of another requirement, from another namespace that has the same target")
		travels(ctx, "w1", "honest")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "secret", "honest-creds") }).
			WithContext(ctx).Should(Equal("honest-creds"), "Secrets do arrive")
		Expect(harness.Apply(ctx, fleet, "w1", `
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: burglar, namespace: den}
spec: {version: "5.7", storageGB: 20, writeConnectionSecretToRef: {name: honest-creds}}
`)).To(Succeed())
		Eventually(sourceInHub).WithArguments(ctx, "burglar").WithContext(ctx).Should(HaveSuffix("/den"))

		By("giving the manager a reason to look at all of them again")
		for _, where := range []string{"thief", "burglar"} {
			kubectl(ctx, hub, "annotate", "mysqlinstancerequirements", where, "--namespace", "bar", "look=again")
		}
		travels(ctx, "w1", "later")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "secret", "later-creds") }).
			WithContext(ctx).Should(Equal("later-creds"))
		Expect(get(ctx, "w1", "{.metadata.name}", "secret", "thief-creds")).To(BeEmpty())
		Expect(get(ctx, "w1", "{.metadata.name}", "secret", "honest-creds", "--namespace", "den")).To(BeEmpty())
	})
})
