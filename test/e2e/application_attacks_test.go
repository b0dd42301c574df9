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

// The attack list is in docs/security.md. Here users of a workload cluster try the attacks that are possible with
// Applications.
var _ = Describe("Applications of an attacker", secondFleet, func() {
	It("own nothing outside their namespace, and nothing without one", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "thief")
		inNamespace(ctx, "w1", "victim")
		Expect(harness.Apply(ctx, fleet, "w1", reachingOut)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "w1", "delete", "clusterrole", "loot") })

		By("reporting why in the status")
		eventuallyApplication(ctx, "w1", "thief", "thief", "{.status.componentsInstalled}").Should(Equal("1/3"))
		eventuallyApplication(ctx, "w1", "thief", "thief", componentPath("loot", "reason")).Should(Equal("ClusterScoped"))
		eventuallyApplication(ctx, "w1", "thief", "thief", componentPath("jewels", "reason")).Should(Equal("NotFound"))
		Eventually(owners).WithArguments(ctx, "w1", "thief", "configmap/own").WithContext(ctx).Should(Equal("Application/thief"))

		By("deleting the Application: only its own goes")
		uids := func() string {
			return get(ctx, "w1", "{.metadata.uid}", "configmap", "jewels", "--namespace", "victim") + get(ctx, "w1", "{.metadata.uid}", "clusterrole", "loot")
		}
		before := uids()
		Expect(owners(ctx, "w1", "victim", "configmap/jewels")).To(BeEmpty())
		Expect(get(ctx, "w1", "{.metadata.ownerReferences}", "clusterrole", "loot")).To(BeEmpty())
		kubectl(ctx, "w1", "delete", "applications", "thief", "--namespace", "thief")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.name}", "configmap", "own", "--namespace", "thief") }).WithContext(ctx).Should(BeEmpty())
		Expect(uids()).To(Equal(before))
	}, applicationTimeout)

	It("lose owner references that were forged, and a status that lies", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "forge")
		Expect(harness.Apply(ctx, fleet, "w1", smallApplication("forge", "honest"))).To(Succeed())
		Expect(harness.Apply(ctx, fleet, "w1", smallApplication("forge", "grabber"))).To(Succeed())
		eventuallyApplication(ctx, "w1", "forge", "honest", summaryPath).Should(Equal("2/2 Unknown Healthy"))
		Eventually(owners).WithArguments(ctx, "w1", "forge", "service/honest").WithContext(ctx).Should(Equal("Application/honest"))

		By("naming another Application as an owner")
		uid := application(ctx, "w1", "forge", "grabber", "{.metadata.uid}")
		kubectl(ctx, "w1", "patch", "service", "honest", "--namespace", "forge", "--type=json", "-p",
			fmt.Sprintf(`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"apps.masthead.dev/v1alpha1","kind":"Application","name":"grabber","uid":%q}}]`, uid))
		Eventually(owners).WithArguments(ctx, "w1", "forge", "service/honest").WithContext(ctx).Should(Equal("Application/honest"))

		By("lying about the status")
		kubectl(ctx, "w1", "delete", "configmap", "honest-settings", "--namespace", "forge")
		eventuallyApplication(ctx, "w1", "forge", "honest", summaryPath).Should(Equal("1/2 Unknown Missing"))
		kubectl(ctx, "w1", "patch", "applications", "honest", "--namespace", "forge", "--subresource=status", "--type=merge", "-p",
			`{"status":{"health":"Healthy","ready":"True","componentsInstalled":"2/2","installed":["everything"],"message":"","counts":null}}`)
		eventuallyApplication(ctx, "w1", "forge", "honest", summaryPath).Should(Equal("1/2 Unknown Missing"))
		eventuallyApplication(ctx, "w1", "forge", "honest", "{.status.installed}").Should(Equal(`["honest"]`))
		Eventually(report).WithArguments(ctx, "w1", "{.status.worst[0].name} {.status.worst[0].health}").WithContext(ctx).Should(Equal("honest Missing"))
	}, applicationTimeout)

	It("repeat no text that is long or moves a cursor", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "loud")
		Expect(harness.Apply(ctx, fleet, "w1", shouting)).To(Succeed())
		message, err := json.Marshal("\x1b[2J\x07" + strings.Repeat("x", 20000))
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "w1", "patch", "horizontalpodautoscalers", "megaphone", "--namespace", "loud", "--subresource=status", "--type=merge", "-p",
			fmt.Sprintf(`{"status":{"currentReplicas":0,"desiredReplicas":0,"conditions":[{"type":"ScalingActive","status":"False","reason":"Loud","message":%s},`+
				`{"type":"AbleToScale","status":"False","reason":"Loud","message":%s}]}}`, message, message))
		eventuallyApplication(ctx, "w1", "loud", "loud", componentPath("megaphone", "health")).ShouldNot(BeElementOf("", "Healthy", "Missing"))
		Eventually(report).WithArguments(ctx, "w1", "{.status.worst[0].name}").WithContext(ctx).Should(Equal("loud"))
		for _, text := range []string{
			application(ctx, "w1", "loud", "loud", "{.status}"), report(ctx, "w1", "{.status}"),
		} {
			Expect(len(text)).To(BeNumerically("<", 8192))
			Expect(text).NotTo(ContainSubstring("\x1b"))
			Expect(text).NotTo(ContainSubstring(`\u001b`))
		}
	}, applicationTimeout)

	It("cost others nothing by being many and naming kinds that do not exist", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1", "w2")
		inNamespace(ctx, "w1", "flood")
		inNamespace(ctx, "w2", "calm")
		var flood strings.Builder
		for i := range 200 {
			fmt.Fprintf(&flood, `---
apiVersion: apps.masthead.dev/v1alpha1
kind: Application
metadata: {name: flood-%[1]d, namespace: flood}
spec:
  selector: {}
  components:
    a: {group: g%[1]d.flood.example.org, version: v1, kind: Nothing}
    b: {group: apps, version: v%[1]d, kind: Deployment}
`, i)
		}
		Expect(harness.Apply(ctx, fleet, "w1", flood.String())).To(Succeed())
		Expect(harness.Apply(ctx, fleet, "w2", smallApplication("calm", "shop"))).To(Succeed())
		eventuallyApplication(ctx, "w2", "calm", "shop", summaryPath).Should(Equal("2/2 Unknown Healthy"))

		By("telling each of them, on its components only")
		for _, name := range []string{"flood-0", "flood-199"} {
			eventuallyApplication(ctx, "w1", "flood", name, componentPath("a", "reason")).Should(Equal("KindNotServed"))
			Expect(application(ctx, "w1", "flood", name, "{.status.health}")).To(Equal("Unknown"))
		}
		eventuallySeen(ctx, `masthead:applications:max{health="Unknown"} > 0`)
		Expect(harness.Apply(ctx, fleet, "w1", smallApplication("flood", "beside"))).To(Succeed())
		eventuallyApplication(ctx, "w1", "flood", "beside", summaryPath).Should(Equal("2/2 Unknown Healthy"))
	}, applicationTimeout)
})

// reachingOut is an Application with three components: one in its own namespace, one in another namespace, and one
// without a namespace.
const reachingOut = `
apiVersion: apps.masthead.dev/v1alpha1
kind: Application
metadata: {name: thief, namespace: thief}
spec:
  selector: {}
  components:
    own: {version: v1, kind: ConfigMap}
    jewels: {version: v1, kind: ConfigMap}
    loot: {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: thief, annotations: {kubernetes.io/application: thief}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: jewels, namespace: victim, annotations: {kubernetes.io/application: thief}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: loot, annotations: {kubernetes.io/application: thief}}
rules: []
`

// shouting is an Application whose component has a status that only the attacker writes.
const shouting = `
apiVersion: apps.masthead.dev/v1alpha1
kind: Application
metadata: {name: loud, namespace: loud}
spec:
  selector: {}
  components:
    megaphone: {group: autoscaling, version: v2, kind: HorizontalPodAutoscaler}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: megaphone, namespace: loud, annotations: {kubernetes.io/application: loud}}
spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}
`
