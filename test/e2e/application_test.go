// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// applicationTimeout ends a spec that waits without success.
const applicationTimeout = SpecTimeout(6 * time.Minute)

const applicationsCRD = "applications.apps.masthead.dev"

// enrolForApplications enrols clusters for one spec and waits until their users could create Applications.
func enrolForApplications(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	enrolAll(ctx, clusters...)
	for _, name := range clusters {
		eventuallyServes(ctx, name, applicationsCRD)
	}
}

// inNamespace creates a namespace in a cluster for one spec.
func inNamespace(ctx context.Context, cluster, namespace string) {
	GinkgoHelper()
	kubectl(ctx, cluster, "create", "namespace", namespace)
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, cluster, "delete", "namespace", namespace, "--timeout=2m") })
}

// applySample applies one of the samples in config/samples/application.
func applySample(ctx context.Context, cluster, namespace, file string) {
	GinkgoHelper()
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, cluster, "apply", "--server-side", "--namespace", namespace, "-f", filepath.Join(repository, "config", "samples", "application", file))
}

// application returns the value of a JSONPath in an Application.
func application(ctx context.Context, cluster, namespace, name, path string) string {
	GinkgoHelper()
	return get(ctx, cluster, path, "applications.apps.masthead.dev", name, "--namespace", namespace)
}

// summaryPath shows an Application as kubectl get does: INSTALLED READY HEALTH.
const summaryPath = "{.status.componentsInstalled} {.status.ready} {.status.health}"

func eventuallyApplication(ctx context.Context, cluster, namespace, name, path string) AsyncAssertion {
	GinkgoHelper()
	return Eventually(application).WithArguments(ctx, cluster, namespace, name, path).WithContext(ctx)
}

// componentPath is one field of a component in the status of an Application.
func componentPath(component, field string) string {
	return fmt.Sprintf(`{.status.components[?(@.name=="%s")].%s}`, component, field)
}

func conditionPath(conditionType string) string {
	return fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.status}/{.reason}{end}`, conditionType)
}

// owners are the owners of an object, in the form Kind/name.
func owners(ctx context.Context, cluster, namespace string, object ...string) string {
	GinkgoHelper()
	return get(ctx, cluster, `{range .metadata.ownerReferences[*]}{.kind}/{.name} {end}`, append(object, "--namespace", namespace)...)
}

// playCloud gives a Service of the type LoadBalancer its address, as a cloud does.
func playCloud(ctx context.Context, cluster, namespace, service string) {
	GinkgoHelper()
	kubectl(ctx, cluster, "patch", "service", service, "--namespace", namespace, "--subresource=status", "--type=merge",
		"-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.10"}]}}}`)
}

// playProbe makes a Pod ready or not, as a kubelet does when a probe fails or succeeds again.
func playProbe(ctx context.Context, cluster, namespace, pod string, ready bool) {
	GinkgoHelper()
	status := "False"
	if ready {
		status = "True"
	}
	kubectl(ctx, cluster, "patch", "pod", pod, "--namespace", namespace, "--subresource=status", "--type=strategic",
		"-p", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"%s"},{"type":"ContainersReady","status":"%s"}]}}`, status, status))
}

// left lists the objects of some resources in a namespace, in the form Kind/name.
func left(ctx context.Context, cluster, namespace string, resources ...string) []string {
	GinkgoHelper()
	var found []string
	for _, resource := range resources {
		list := get(ctx, cluster, "{range .items[*]}{.kind}/{.metadata.name} {end}", resource, "--namespace", namespace)
		found = append(found, strings.Fields(list)...)
	}
	return found
}

var _ = Describe("Application", func() {
	It("shows WordPress as it is installed, healthy, broken and mended, and is deleted with everything", needs(localProcesses,
		"plays what a kubelet finds"), func(ctx SpecContext) {
		By("publishing metrics of each Application")
		Expect(manager.Stop(ctx)).To(Succeed())
		startManager(ctx, "--application-metrics=PerApplication")
		DeferCleanup(restartManager)
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "blog")
		By("having beside it what looks like it, and is not")
		Expect(harness.Apply(ctx, fleet, "w1", bystanders)).To(Succeed())

		By("installing it")
		applySample(ctx, "w1", "blog", "wordpress.yaml")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", "{.status.componentsInstalled}").Should(Equal("5/5"))
		Expect(application(ctx, "w1", "blog", "wordpress", "{.status.installed}")).To(Equal(
			`["wordpress-mysql","wordpress-mysql-hsvc","wordpress-webserver","wordpress-webserver-hsvc","wordpress-webserver-svc"]`))
		eventuallyApplication(ctx, "w1", "blog", "wordpress", conditionPath("Installed")).Should(Equal("True/Installed"))
		eventuallyApplication(ctx, "w1", "blog", "wordpress", componentPath("wordpress-webserver-svc", "health")).Should(Equal("Progressing"),
			"the load balancer has no address yet")
		playCloud(ctx, "w1", "blog", "wordpress-webserver-svc")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 True Healthy"))
		Expect(application(ctx, "w1", "blog", "wordpress", "{.status.message}")).To(BeEmpty())
		Expect(application(ctx, "w1", "blog", "wordpress", "{.status.observedGeneration}")).To(
			Equal(application(ctx, "w1", "blog", "wordpress", "{.metadata.generation}")))

		By("owning what it selects, and nothing else")
		for _, object := range []string{
			"service/wordpress-mysql-hsvc", "statefulset/wordpress-mysql", "service/wordpress-webserver-hsvc", "service/wordpress-webserver-svc",
			"statefulset/wordpress-webserver",
		} {
			Eventually(owners).WithArguments(ctx, "w1", "blog", object).WithContext(ctx).Should(Equal("Application/wordpress"), object)
		}
		for _, object := range []string{"service/not-annotated", "service/another-label", "configmap/another-kind"} {
			Expect(owners(ctx, "w1", "blog", object)).To(BeEmpty(), object)
		}

		By("breaking: the web server is not ready, and the health check finds out")
		check := application(ctx, "w1", "blog", "wordpress", "{.status.healthCheckPod}")
		playProbe(ctx, "w1", "blog", "wordpress-webserver-0", false)
		playProbe(ctx, "w1", "blog", check, false)
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 False Progressing"))
		Expect(application(ctx, "w1", "blog", "wordpress", conditionPath("HealthCheckPassed"))).To(Equal("False/HealthCheckNotReady"))
		Expect(application(ctx, "w1", "blog", "wordpress", conditionPath("Ready"))).To(HavePrefix("False/"))
		Expect(application(ctx, "w1", "blog", "wordpress", "{.status.message}")).To(ContainSubstring("wordpress-webserver"))

		By("breaking more: a Service is gone")
		kubectl(ctx, "w1", "delete", "service", "wordpress-mysql-hsvc", "--namespace", "blog")
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("4/5 False Missing"))
		Expect(application(ctx, "w1", "blog", "wordpress", conditionPath("Installed"))).To(Equal("False/ComponentsMissing"))
		Expect(application(ctx, "w1", "blog", "wordpress", componentPath("wordpress-mysql-hsvc", "reason"))).To(Equal("NotFound"))
		eventuallySeen(ctx, `masthead:applications:max{health="Missing"} > 0`)
		eventuallySeen(ctx, `masthead_application_ready == 0`)

		By("mending")
		applySample(ctx, "w1", "blog", "wordpress.yaml")
		playProbe(ctx, "w1", "blog", "wordpress-webserver-0", true)
		playProbe(ctx, "w1", "blog", check, true)
		eventuallyApplication(ctx, "w1", "blog", "wordpress", summaryPath).Should(Equal("5/5 True Healthy"))
		Eventually(owners).WithArguments(ctx, "w1", "blog", "service/wordpress-mysql-hsvc").WithContext(ctx).Should(Equal("Application/wordpress"))

		By("losing the health check's Pod: there is another one")
		uid := get(ctx, "w1", "{.metadata.uid}", "pod", check, "--namespace", "blog")
		kubectl(ctx, "w1", "delete", "pod", check, "--namespace", "blog")
		Eventually(func() string { return get(ctx, "w1", "{.metadata.uid}", "pod", check, "--namespace", "blog") }).
			WithContext(ctx).Should(And(Not(BeEmpty()), Not(Equal(uid))))
		eventuallyApplication(ctx, "w1", "blog", "wordpress", "{.status.ready}").Should(Equal("True"))
		eventuallyApplication(ctx, "w1", "blog", "wordpress", conditionPath("Ready")).Should(Equal("True/Ready"))

		By("letting no user delete the kind while the cluster is enrolled")
		Eventually(func() error {
			_, err := harness.Kubectl(ctx, fleet, "w1", "delete", "crd", applicationsCRD, "--dry-run=server")
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring("Masthead keeps this as it is in the hub")))

		By("deleting it")
		kubectl(ctx, "w1", "delete", "applications", "wordpress", "--namespace", "blog")
		Eventually(left).WithArguments(ctx, "w1", "blog", "statefulsets", "pods", "persistentvolumeclaims").WithContext(ctx).Should(BeEmpty())
		Eventually(left).WithArguments(ctx, "w1", "blog", "services").WithContext(ctx).
			Should(ConsistOf("Service/not-annotated", "Service/another-label"))
		Expect(get(ctx, "w1", "{.metadata.name}", "configmap", "another-kind", "--namespace", "blog")).To(Equal("another-kind"))
	}, applicationTimeout)

	It("shows a dependency that comes and goes", needs(localProcesses,
		"has Pods that run without an image"), func(ctx SpecContext) {
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "shared")
		applySample(ctx, "w1", "shared", "wordpress-has-mysql.yaml")
		playCloud(ctx, "w1", "shared", "wordpress-svc")
		eventuallyApplication(ctx, "w1", "shared", "mysql", summaryPath).Should(Equal("2/2 True Healthy"))
		eventuallyApplication(ctx, "w1", "shared", "wordpress", summaryPath).Should(Equal("3/3 Unknown Healthy"), "it has no health check")
		eventuallyApplication(ctx, "w1", "shared", "wordpress", conditionPath("Installed")).Should(Equal("True/Installed"))
		Expect(application(ctx, "w1", "shared", "wordpress", "{.status.installed}")).To(ContainSubstring(`"mysql"`))

		By("deleting what it depends on, which takes nothing of it along")
		kubectl(ctx, "w1", "delete", "applications", "mysql", "--namespace", "shared")
		eventuallyApplication(ctx, "w1", "shared", "wordpress", conditionPath("Installed")).Should(Equal("False/DependenciesMissing"))
		Expect(application(ctx, "w1", "shared", "wordpress", "{.status.installed}")).NotTo(ContainSubstring(`"mysql"`))
		Eventually(left).WithArguments(ctx, "w1", "shared", "statefulsets").WithContext(ctx).Should(ConsistOf("StatefulSet/wordpress-webserver"))
		Expect(application(ctx, "w1", "shared", "wordpress", "{.status.componentsInstalled}")).To(Equal("3/3"))

		By("installing it again")
		applySample(ctx, "w1", "shared", "wordpress-has-mysql.yaml")
		eventuallyApplication(ctx, "w1", "shared", "wordpress", conditionPath("Installed")).Should(Equal("True/Installed"))
		eventuallyApplication(ctx, "w1", "shared", "mysql", summaryPath).Should(Equal("2/2 True Healthy"))

		By("deleting the one that depends on it: the database stays")
		kubectl(ctx, "w1", "delete", "applications", "wordpress", "--namespace", "shared")
		Eventually(left).WithArguments(ctx, "w1", "shared", "statefulsets", "services").WithContext(ctx).
			Should(ConsistOf("StatefulSet/mysql", "Service/mysql-hsvc"))
		Expect(application(ctx, "w1", "shared", "mysql", summaryPath)).To(Equal("2/2 True Healthy"))
	}, applicationTimeout)

	It("is summed up in the hub, and a cluster that cannot be reached is never shown as healthy", func(ctx SpecContext) {
		enrolForApplications(ctx, "w1", "w2")
		for _, cluster := range []string{"w1", "w2"} {
			inNamespace(ctx, cluster, "team")
			Expect(harness.Apply(ctx, fleet, cluster, smallApplication("team", "shop"))).To(Succeed())
			eventuallyApplication(ctx, cluster, "team", "shop", summaryPath).Should(Equal("2/2 Unknown Healthy"))
		}
		for _, cluster := range []string{"w1", "w2"} {
			Eventually(report).WithArguments(ctx, cluster, countsPath).WithContext(ctx).Should(Equal("1 1 0"), cluster)
			Eventually(report).WithArguments(ctx, cluster, conditionPath("Current")).WithContext(ctx).Should(HavePrefix("True/"), cluster)
		}

		By("breaking it in one of them")
		kubectl(ctx, "w2", "delete", "configmap", "shop-settings", "--namespace", "team")
		eventuallyApplication(ctx, "w2", "team", "shop", summaryPath).Should(Equal("1/2 Unknown Missing"))
		Eventually(report).WithArguments(ctx, "w2", countsPath).WithContext(ctx).Should(Equal("1 0 1"))
		Expect(report(ctx, "w2", "{.status.worst[0].namespace}/{.status.worst[0].name} {.status.worst[0].health}")).To(Equal("team/shop Missing"))
		Expect(report(ctx, "w1", countsPath)).To(Equal("1 1 0"), "the other cluster's is another Application")
		Expect(application(ctx, "w1", "team", "shop", summaryPath)).To(Equal("2/2 Unknown Healthy"))

		By("losing the healthy one")
		Expect(fleet.Pause(ctx, "w1")).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(fleet.Resume(ctx, "w1")).To(Succeed()) })
		Eventually(report).WithArguments(ctx, "w1", conditionPath("Current")).WithContext(ctx).Should(Equal("False/Unreachable"))
		Expect(report(ctx, "w1", "{.status.applications.healthy}")).To(BeElementOf("", "0"))
		Expect(report(ctx, "w1", "{.status.lastSeen}")).NotTo(BeEmpty())
		Eventually(report).WithArguments(ctx, "w2", conditionPath("Current")).WithContext(ctx).Should(HavePrefix("True/"))

		By("having it back")
		Expect(fleet.Resume(ctx, "w1")).To(Succeed())
		Eventually(report).WithArguments(ctx, "w1", countsPath).WithContext(ctx).Should(Equal("1 1 0"))
		Eventually(report).WithArguments(ctx, "w1", conditionPath("Current")).WithContext(ctx).Should(HavePrefix("True/"))

		By("un-enrolling one: its report goes, and nothing in the cluster does")
		unenrol(ctx, "w2")
		Eventually(report).WithArguments(ctx, "w2", "{.metadata.name}").WithContext(ctx).Should(BeEmpty())
		eventuallyApplication(ctx, "w2", "team", "shop", conditionPath("ComponentsWatched")).Should(Equal("False/NotEnrolled"))
		Expect(get(ctx, "w2", "{.metadata.name}", "service", "shop", "--namespace", "team")).To(Equal("shop"))
		Eventually(func() []string { return metrics(ctx).Series(clusterName("w2")) }).WithContext(ctx).
			ShouldNot(ContainElement(ContainSubstring("masthead_application")))
	}, applicationTimeout)

	It("gets by with changing owner references, to which the sample policy holds it", func(ctx SpecContext) {
		// Where the chart has installed Masthead's rights, the policy exists already.
		if get(ctx, "w1", "{.metadata.name}", "validatingadmissionpolicy", "masthead-owner-references-only") == "" {
			repository, err := localfleet.Repository()
			Expect(err).NotTo(HaveOccurred())
			policy := filepath.Join(repository, "config", "samples", "workload", "components-policy.yaml")
			kubectl(ctx, "w1", "apply", "--server-side", "-f", policy)
			DeferCleanup(func(ctx context.Context) { kubectl(ctx, "w1", "delete", "-f", policy) })
		}
		enrolForApplications(ctx, "w1")
		inNamespace(ctx, "w1", "held")
		Expect(harness.Apply(ctx, fleet, "w1", smallApplication("held", "shop"))).To(Succeed())

		By("seeing that the policy is in force for Masthead's user, and for its user only")
		change := []string{"label", "service", "shop", "--namespace", "held", "--overwrite", "changed=yes", "--dry-run=server"}
		Eventually(func() error {
			_, err := harness.Kubectl(ctx, fleet, "w1", append(change, "--as=system:serviceaccount:masthead-system:masthead")...)
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring("Masthead may change nothing but owner references here")))
		kubectl(ctx, "w1", change...)

		eventuallyApplication(ctx, "w1", "held", "shop", summaryPath).Should(Equal("2/2 Unknown Healthy"))
		Eventually(owners).WithArguments(ctx, "w1", "held", "service/shop").WithContext(ctx).Should(Equal("Application/shop"))
		kubectl(ctx, "w1", "annotate", "service", "shop", "--namespace", "held", "kubernetes.io/application-")
		Eventually(owners).WithArguments(ctx, "w1", "held", "service/shop").WithContext(ctx).Should(BeEmpty())
	}, applicationTimeout)
})

// report returns the value of a JSONPath in the ApplicationReport of a cluster.
func report(ctx context.Context, cluster, path string) string {
	GinkgoHelper()
	return get(ctx, hub, path, "applicationreports.fleet.masthead.dev", "capi-"+cluster)
}

// countsPath are the Applications of a cluster: all, the healthy ones, and those with missing components.
const countsPath = "{.status.applications.total} {.status.applications.healthy} {.status.applications.missing}"

// smallApplication is an Application with two components, both of which are healthy when they exist.
func smallApplication(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: apps.masthead.dev/v1alpha1
kind: Application
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  type: shop
  version: "1"
  selector: {matchLabels: {app: %[2]s}}
  components:
    %[2]s: {version: v1, kind: Service}
    %[2]s-settings: {version: v1, kind: ConfigMap}
---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}, annotations: {kubernetes.io/application: %[2]s}}
spec: {ports: [{port: 80}], selector: {app: %[2]s}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[2]s-settings, namespace: %[1]s, labels: {app: %[2]s}, annotations: {kubernetes.io/application: %[2]s}}
data: {colour: blue}
`, namespace, name)
}

// bystanders look like components of WordPress in the namespace blog, and each lacks one thing.
const bystanders = `
apiVersion: v1
kind: Service
metadata: {name: not-annotated, namespace: blog, labels: {app: wordpress}}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: another-label, namespace: blog, labels: {app: drupal}, annotations: {kubernetes.io/application: wordpress}}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: another-kind, namespace: blog, labels: {app: wordpress}, annotations: {kubernetes.io/application: wordpress}}
`
