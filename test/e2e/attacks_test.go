// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

// inHub returns the value of a JSONPath in a requirement's object in the hub.
func inHub(ctx context.Context, name, path string) string {
	GinkgoHelper()
	return get(ctx, hub, path, "mysqlinstancerequirements", name, "--namespace", "bar")
}

// getIdentifier is the identifier of a workload cluster for which none was specified.
func getIdentifier(ctx context.Context, cluster string) string {
	GinkgoHelper()
	return get(ctx, cluster, "{.metadata.uid}", "namespace", "kube-system")
}

// The attack list is in docs/security.md. Attacks against one part of Masthead are in the tests of that part; here the
// owner of w1 tries attacks that need a whole fleet, against the hub and w2.
var _ = Describe("The owner of a workload cluster who is an attacker", func() {
	It("cannot pass a claim off as another cluster's by its annotations", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w2", "victim")
		before := inHub(ctx, "victim", "{.metadata.uid}")
		victim := getIdentifier(ctx, "w2")

		claim(ctx, "w1", "victim",
			"agent.crossplane.io/source-uid", victim, "agent.crossplane.io/source-namespace", "default",
			"agent.masthead.dev/applied-hash", inHub(ctx, "victim", `{.metadata.annotations.agent\.masthead\.dev/applied-hash}`))
		DeferCleanup(func(ctx context.Context) { deleteClaim(ctx, "w1", "victim") })
		Eventually(agentSynced).WithArguments(ctx, "w1", "victim").WithContext(ctx).Should(Equal("False/Conflict"))
		claim(ctx, "w1", "forged", "agent.crossplane.io/source-uid", victim, "agent.crossplane.io/source-namespace", "default")
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "forged") })
		Eventually(sourceInHub).WithArguments(ctx, "forged").WithContext(ctx).Should(Equal(getIdentifier(ctx, "w1") + "/default"))
		Expect(get(ctx, "w2", "{.metadata.name}", "mysqlinstancerequirements", "forged")).To(BeEmpty())

		By("deleting what was refused: the victim's object stays")
		deleteClaim(ctx, "w1", "victim")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "mysqlinstancerequirements", "victim") }).
			WithContext(ctx).Should(BeEmpty())
		Expect(inHub(ctx, "victim", "{.metadata.uid}")).To(Equal(before))
		Expect(inHub(ctx, "victim", "{.metadata.deletionTimestamp}")).To(BeEmpty())
	})

	It("cannot take the composite resource of another claim by naming it", func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w2", "owner")
		var composite string
		Eventually(func() string {
			composite = inHub(ctx, "owner", "{.spec.resourceRef.name}")
			return composite
		}).WithContext(ctx).ShouldNot(BeEmpty())

		Expect(harness.Apply(ctx, fleet, "w1", fmt.Sprintf(`
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: taker, namespace: default}
spec:
  version: "5.7"
  storageGB: 20
  resourceRef: {apiVersion: database.acmeco.org/v1alpha1, kind: CompositeMySQLInstance, name: %s}
  writeConnectionSecretToRef: {name: taker-creds}
`, composite))).To(Succeed())
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "taker") })
		Eventually(func() string { return inHub(ctx, "taker", "{.spec.resourceRef.name}") }).WithContext(ctx).
			ShouldNot(BeElementOf("", composite), "it gets a composite resource of its own")
		Eventually(agentSynced).WithArguments(ctx, "w1", "taker").WithContext(ctx).Should(Equal("True/Synced"))
		deleteClaim(ctx, "w1", "taker")
		Eventually(sourceInHub).WithArguments(ctx, "taker").WithContext(ctx).Should(BeEmpty())
		Expect(get(ctx, hub, "{.spec.claimRef.name}", "compositemysqlinstances", composite)).To(Equal("owner"))
	})

	It("cannot steer what runs in the hub by labels, annotations, owners or finalizers", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		Expect(harness.Apply(ctx, fleet, "w1", fmt.Sprintf(`
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata:
  name: steering
  namespace: default
  labels:
    crossplane.io/composite: another-owners
    cluster.x-k8s.io/cluster-name: w2
    masthead.dev/managed-by: masthead
    team: shop
  annotations:
    crossplane.io/external-name: another-owners
    kubectl.kubernetes.io/restartedAt: now
    agent.masthead.dev/adoptable-by: everybody
    team: shop
  finalizers: [attacker.example.org/keep]
  ownerReferences: [{apiVersion: v1, kind: Namespace, name: default, uid: %s}]
spec: {version: "5.7", storageGB: 20}
`, get(ctx, "w1", "{.metadata.uid}", "namespace", "default")))).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w1", "patch", "mysqlinstancerequirements", "steering", "--type=merge", "-p",
				`{"metadata":{"finalizers":["agent.masthead.dev/requirement"],"annotations":{"crossplane.io/paused":null}}}`)
			cleanClaim(ctx, "w1", "steering")
		})
		Eventually(func() string {
			return get(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, "mysqlinstancerequirements", "steering")
		}).WithContext(ctx).Should(Equal("True"), "it is provisioned all the same")
		kubectl(ctx, "w1", "annotate", "mysqlinstancerequirements", "steering", "crossplane.io/paused=true", "agent.masthead.dev/reconcile-requested-at=now")
		Eventually(agentSynced).WithArguments(ctx, "w1", "steering").WithContext(ctx).Should(Equal("False/ReconcilePaused"))
		var metadata struct {
			Labels, Annotations map[string]string
			Finalizers          []string
			OwnerReferences     []any
		}
		Expect(json.Unmarshal([]byte(inHub(ctx, "steering", "{.metadata}")), &metadata)).To(Succeed())
		Expect(metadata.Labels).To(HaveKeyWithValue("team", "shop"))
		Expect(metadata.Annotations).To(HaveKeyWithValue("team", "shop"))
		for key := range metadata.Labels {
			Expect(key).NotTo(BeElementOf("crossplane.io/composite", "cluster.x-k8s.io/cluster-name", "masthead.dev/managed-by"))
		}
		for key := range metadata.Annotations {
			Expect(key).NotTo(BeElementOf("crossplane.io/paused", "kubectl.kubernetes.io/restartedAt",
				"agent.masthead.dev/adoptable-by", "agent.masthead.dev/reconcile-requested-at"))
		}
		Expect(metadata.Annotations["crossplane.io/external-name"]).NotTo(Equal("another-owners"))
		Expect(metadata.Finalizers).NotTo(ContainElement("attacker.example.org/keep"))
		Expect(metadata.OwnerReferences).To(BeEmpty())
	})

	It("gains nothing by a status that lies", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "liar")
		Eventually(func() string {
			return get(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, "mysqlinstancerequirements", "liar")
		}).WithContext(ctx).Should(Equal("True"))
		kubectl(ctx, "w1", "patch", "mysqlinstancerequirements", "liar", "--subresource=status", "--type=merge", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Lie","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Lie","status":"True","reason":"Lie","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		Eventually(func() string {
			return get(ctx, "w1", `{.status.conditions[*].type}/{.status.conditions[?(@.type=="Ready")].status}`, "mysqlinstancerequirements", "liar")
		}).WithContext(ctx).Should(And(Not(ContainSubstring("Lie")), HaveSuffix("/True")), "it is put back")
		Expect(inHub(ctx, "liar", "{.status.conditions[*].type}")).NotTo(ContainSubstring("Lie"))
	})

	It("harms no other cluster by huge claims and many of them", secondFleet, func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		huge := strings.Repeat("x", 1<<20)
		Expect(harness.Apply(ctx, fleet, "w1", fmt.Sprintf(`{"apiVersion":"database.acmeco.org/v1alpha1","kind":"MySQLInstanceRequirement",
"metadata":{"name":"huge","namespace":"default"},"spec":{"version":%q,"storageGB":1}}`, huge))).To(Succeed())
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "huge") })
		var many strings.Builder
		for i := range 100 {
			fmt.Fprintf(&many, `---
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: many-%d, namespace: default, labels: {attack: many}}
spec: {version: "5.7", storageGB: 1}
`, i)
		}
		Expect(harness.Apply(ctx, fleet, "w1", many.String())).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w1", "delete", "mysqlinstancerequirements", "--selector=attack=many", "--timeout=5m")
			Eventually(func() string {
				return get(ctx, hub, "{.items[*].metadata.name}", "mysqlinstancerequirements", "--namespace", "bar", "--selector=attack=many")
			}).WithContext(ctx).Should(BeEmpty())
		})
		for i := range 3 {
			travels(ctx, "w2", fmt.Sprintf("beside-many-%d", i))
		}
		eventuallyConnected(ctx, "w2")
	})

	It("leaves the hub's object behind by tearing a finalizer out, and takes no other cluster's with it", needs(localProcesses,
		"freezes the API server of the hub and nothing beside it"), func(ctx SpecContext) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w2", "bystander")
		bystander := inHub(ctx, "bystander", "{.metadata.uid}")
		claim(ctx, "w1", "torn")
		Eventually(agentSynced).WithArguments(ctx, "w1", "torn").WithContext(ctx).Should(Equal("True/Synced"))
		Expect(fleet.Pause(ctx, hub)).To(Succeed(), "so that the deletion cannot be carried to the hub first")
		kubectl(ctx, "w1", "delete", "mysqlinstancerequirements", "torn", "--wait=false")
		kubectl(ctx, "w1", "patch", "mysqlinstancerequirements", "torn", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		Expect(fleet.Resume(ctx, hub)).To(Succeed())

		By("asking for it again: what it had is taken over, or created again, and is w1's alone")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "mysqlinstancerequirements", "torn") }).WithContext(ctx).Should(BeEmpty())
		claim(ctx, "w1", "torn")
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "torn") })
		Eventually(agentSynced).WithArguments(ctx, "w1", "torn").WithContext(ctx).Should(Equal("True/Synced"))
		Expect(sourceInHub(ctx, "torn")).To(Equal(getIdentifier(ctx, "w1") + "/default"))
		Expect(agentSynced(ctx, "w2", "bystander")).To(Equal("True/Synced"))
		Expect(inHub(ctx, "bystander", "{.metadata.uid}")).To(Equal(bystander), "the object of the other cluster is unchanged")
	})
})
