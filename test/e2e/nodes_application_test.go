// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

// volumes are the volumes that the sample claims; the nodes' image may have no provisioner.
const volumes = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: first, labels: {sample: wordpress}}
spec:
  storageClassName: standard
  accessModes: [ReadWriteOnce]
  capacity: {storage: 250Gi}
  hostPath: {path: /var/first, type: DirectoryOrCreate}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: second, labels: {sample: wordpress}}
spec:
  storageClassName: standard
  accessModes: [ReadWriteOnce]
  capacity: {storage: 250Gi}
  hostPath: {path: /var/second, type: DirectoryOrCreate}
`

var _ = Describe("An Application whose Pods run", needs(kindClusters, "has Pods whose probes run"), func() {
	It("is healthy by a Pod that asks its web server, is ill without its database, and goes with all that it owns", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1")
		Expect(harness.Apply(ctx, fleet, "w1", volumes)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "w1", "delete", "persistentvolumes", "--selector=sample=wordpress")
		})
		inNamespace(ctx, "w1", "blog")
		kubectl(ctx, "w1", "create", "secret", "generic", "mysql-pass", "--from-literal=password=p", "--namespace", "blog")
		applySample(ctx, "w1", "blog", "wordpress.yaml")

		By("waiting for what a cloud has to give: the address of its load balancer")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", componentPath("wordpress-webserver-svc", "health")).Should(Equal("Progressing"))
		playCloud(ctx, "w1", "blog", "wordpress-webserver-svc")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 True Healthy"))
		Expect(application(ctx, "w1", "blog", "wordpress", conditionPath("HealthCheckPassed"))).To(Equal("True/HealthCheckReady"))
		check := application(ctx, "w1", "blog", "wordpress", "{.status.healthCheckPod}")
		Expect(get(ctx, "w1", "{.status.phase}", "pod", check, "--namespace", "blog")).To(Equal("Running"))

		By("taking the database away: the web server still runs, and the health check finds that it fails")
		kubectl(ctx, "w1", "scale", "statefulset", "wordpress-mysql", "--replicas=0", "--namespace", "blog")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", conditionPath("HealthCheckPassed")).Should(Equal("False/HealthCheckNotReady"))
		Expect(get(ctx, "w1", `{.status.conditions[?(@.type=="Ready")].status}`, "pod", "wordpress-webserver-0", "--namespace", "blog")).
			To(Equal("True"))
		kubectl(ctx, "w1", "scale", "statefulset", "wordpress-mysql", "--replicas=1", "--namespace", "blog")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 True Healthy"))

		By("losing the Pod of the health check: another one is made, and becomes ready")
		uid := get(ctx, "w1", "{.metadata.uid}", "pod", check, "--namespace", "blog")
		kubectl(ctx, "w1", "delete", "pod", check, "--namespace", "blog")
		Eventually(tryGet).WithArguments(ctx, "w1", "{.metadata.uid}", "pod", check, "--namespace", "blog").WithContext(ctx).
			ShouldNot(BeElementOf("", uid))
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 True Healthy"))

		By("deleting it: the garbage collector takes its components, their Pods and their volumes' claims")
		kubectl(ctx, "w1", "delete", "applications", "wordpress", "--namespace", "blog")
		Eventually(left).WithArguments(ctx, "w1", "blog", "statefulsets", "pods", "services", "persistentvolumeclaims").
			WithContext(ctx).Should(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})
