// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// agentRights are the rights in the chapter "User Experience" of the Crossplane agent's design: the rules of its Role,
// and its subject. The design's ClusterRole read-for-agents has no counterpart, since the published APIs are pulled
// with the manager's rights.
const agentRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: agent-requirement
  namespace: %[1]s
rules:
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["*"]
- apiGroups: ["database.acmeco.org"]
  resources: ["*"]
  verbs: ["*"]
- apiGroups: ["network.acmeco.org"]
  resources: ["*"]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: agent-requirement
  namespace: %[1]s
subjects:
- kind: ServiceAccount
  name: agent1
  namespace: %[1]s
roleRef:
  kind: Role
  name: agent-requirement
  apiGroup: rbac.authorization.k8s.io
`

// classWithIdentity is a class whose claims are carried with the rights of an identity.
func classWithIdentity(ctx context.Context, identity string) {
	GinkgoHelper()
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: fleet.masthead.dev/v1alpha1
kind: EnrollmentClass
metadata: {name: with-identity}
spec:
  allowedNamespaces: {list: [default]}
  agent:
    apiGroups: [database.acmeco.org, network.acmeco.org]
    defaultTargetNamespace: bar
    identity: %s
`, identity))).To(Succeed())
}

// enrolWithIdentity enrols w1 with that class, and cleans up after the spec.
func enrolWithIdentity(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, hub, "label", "--overwrite", "clusters.cluster.x-k8s.io", "w1", "masthead.dev/enroll=with-identity")
	DeferCleanup(func(ctx context.Context) {
		unenrol(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(BeEmpty())
		kubectl(ctx, hub, "delete", "enrollmentclass", "with-identity")
	})
	eventuallyConnected(ctx, "w1")
	eventuallyServesRequirements(ctx, "w1")
}

// agentAccount creates the ServiceAccount agent1 in a namespace of the hub, without any rights.
func agentAccount(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent1, namespace: %[1]s}
`, namespace))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, hub, "delete", "serviceaccount", "agent1", "--namespace", namespace)
		kubectl(ctx, hub, "delete", "role,rolebinding", "agent-requirement", "--namespace", namespace, "--ignore-not-found")
	})
}

// agentCredentials replicates the kubeconfig of agent1 to w1.
func agentCredentials(ctx context.Context, account, namespace, name string) {
	GinkgoHelper()
	token := strings.TrimSpace(kubectl(ctx, hub, "create", "token", "agent1", "--namespace", account))
	server := strings.TrimSpace(kubectl(ctx, hub, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: hub,
    clusters: [{name: hub, cluster: {server: "%s"}}], users: [{name: agent1, user: {token: %s}}],
    contexts: [{name: hub, context: {cluster: hub, user: agent1}}]}`, server, token)
	Expect(harness.Apply(ctx, fleet, "w1", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
type: Opaque
stringData:
  kubeconfig: |
    %s
`, name, namespace, kubeconfig))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "w1", "delete", "secret", name, "--namespace", namespace, "--ignore-not-found")
	})
}

// agentSyncedMessage is the message of the condition AgentSynced.
func agentSyncedMessage(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	return get(ctx, "w1", `{.status.conditions[?(@.type=="AgentSynced")].message}`, "mysqlinstancerequirements", name, "--namespace", namespace)
}

var _ = Describe("Authenticating to the hub", func() {
	It("with credentials in the workload cluster, as the User Experience of the agent's design has it", needs(localProcesses,
		"names the hub as this machine reaches it"), func(ctx SpecContext) {
		agentAccount(ctx, "bar")
		classWithIdentity(ctx, "{credentialsSecretName: agent1-creds}")
		enrolWithIdentity(ctx)
		Expect(harness.Apply(ctx, fleet, "w1", `
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata:
  name: sqldb
  namespace: default
spec:
  version: "5.7"
  storageGB: 20
  writeConnectionSecretToRef:
    name: sql-creds
`)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "sqldb") })
		Eventually(agentSynced).WithArguments(ctx, "w1", "sqldb").WithContext(ctx).Should(Equal("False/CredentialsMissing"))
		eventuallySeen(ctx, `masthead_agent_identities{reason!="Usable"} > 0`)

		By("replicating the kubeconfig of a ServiceAccount that has no right yet")
		agentCredentials(ctx, "bar", "masthead-system", "agent1-creds")
		Eventually(agentSynced).WithArguments(ctx, "w1", "sqldb").WithContext(ctx).Should(Equal("False/Forbidden"))
		Expect(agentSyncedMessage(ctx, "default", "sqldb")).To(And(ContainSubstring(`"system:serviceaccount:bar:agent1"`),
			ContainSubstring("mysqlinstancerequirements.database.acmeco.org"), ContainSubstring(`namespace "bar"`)))
		Expect(sourceInHub(ctx, "sqldb")).To(BeEmpty())

		By("granting it")
		Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(agentRights, "bar"))).To(Succeed())
		kubectl(ctx, "w1", "annotate", "mysqlinstancerequirements", "sqldb", "look=again")
		Eventually(agentSynced).WithArguments(ctx, "w1", "sqldb").WithContext(ctx).Should(Equal("True/Synced"))
		Eventually(func() string { return get(ctx, "w1", "{.data.password}", "secret", "sql-creds") }).WithContext(ctx).ShouldNot(BeEmpty())

		By("giving one namespace another target and credentials of its own")
		agentAccount(ctx, "team-b")
		Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(agentRights, "team-b"))).To(Succeed())
		Expect(harness.Apply(ctx, fleet, "w1", `
apiVersion: v1
kind: Namespace
metadata:
  name: foo
  annotations:
    agent.crossplane.io/target-namespace: team-b
    agent.crossplane.io/credentials-secret-name: my-other-sa-creds
`)).To(Succeed())
		agentCredentials(ctx, "team-b", "foo", "my-other-sa-creds")
		Expect(harness.Apply(ctx, fleet, "w1", `
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: sqldb, namespace: foo}
spec: {version: "5.7", storageGB: 20, writeConnectionSecretToRef: {name: sql-creds}}
`)).To(Succeed())
		Eventually(func() string {
			return get(ctx, hub, "{.metadata.name}", "mysqlinstancerequirements", "sqldb", "--namespace", "team-b")
		}).WithContext(ctx).Should(Equal("sqldb"))
		Eventually(func() string {
			return get(ctx, "w1", "{.data.password}", "secret", "sql-creds", "--namespace", "foo")
		}).WithContext(ctx).ShouldNot(BeEmpty())

		By("deleting the namespace, whose credentials go before its claims")
		kubectl(ctx, "w1", "delete", "namespace", "foo", "--wait=false")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "namespace", "foo") }).WithContext(ctx).Should(BeEmpty())
		Eventually(func() string {
			return get(ctx, hub, "{.metadata.name}", "mysqlinstancerequirements", "sqldb", "--namespace", "team-b")
		}).WithContext(ctx).Should(BeEmpty())
	})

	It("by impersonation of a ServiceAccount of the hub, which has to be granted", func(ctx SpecContext) {
		agentAccount(ctx, "bar")
		Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(agentRights, "bar"))).To(Succeed())
		classWithIdentity(ctx, "{serviceAccountRef: {namespace: bar, name: agent1}}")
		enrolWithIdentity(ctx)
		claim(ctx, "w1", "impersonated")
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "impersonated") })
		Eventually(agentSynced).WithArguments(ctx, "w1", "impersonated").WithContext(ctx).Should(Equal("False/ImpersonationForbidden"))
		Expect(agentSyncedMessage(ctx, "default", "impersonated")).To(ContainSubstring(`impersonate the ServiceAccount "agent1"`))

		repository, err := localfleet.Repository()
		Expect(err).NotTo(HaveOccurred())
		sample := filepath.Join(repository, "config", "samples", "identity", "impersonation.yaml")
		kubectl(ctx, hub, "apply", "--server-side", "-f", sample)
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, hub, "delete", "-f", sample) })
		kubectl(ctx, "w1", "annotate", "mysqlinstancerequirements", "impersonated", "look=again")
		Eventually(agentSynced).WithArguments(ctx, "w1", "impersonated").WithContext(ctx).Should(Equal("True/Synced"))

		By("deleting the claim, for which the right is needed as well")
		cleanClaim(ctx, "w1", "impersonated")
	})
})
