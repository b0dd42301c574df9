// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// The cluster of EKS that is imported is w1 of the fleet.
const (
	imported     = "shop"
	importedEKS  = "cafe0123"
	importedFrom = "eu-central-1"

	// importTimeout is the timeout for what is done once, and for a spec that kills the manager many times.
	importTimeout = 12 * time.Minute
	// pollingOfSteps is how often a spec checks for the moment at which it kills the manager.
	pollingOfSteps = 5 * time.Millisecond
)

var _ = Describe("An imported cluster", Ordered, needs(localProcesses, "plays a cloud and reads audit logs"), func() {
	var (
		cloud = fakecloud.New()
		// admin reads the hub without starting a process for each read.
		admin client.Client
		ended = make(chan error, 1)
		end   = func() { ended <- nil }
	)

	BeforeAll(func(ctx SpecContext) {
		installImports(ctx)
		config, err := fleet.Config("w1")
		Expect(err).NotTo(HaveOccurred())
		api, err := fakecloud.ServiceAccountAPI(ctx, config, "imported", "cluster-admin")
		Expect(err).NotTo(HaveOccurred())
		cloud.FailOnMutation(GinkgoT())
		cloud.AddEKS(fakecloud.EKS{
			Region: importedFrom, Name: importedEKS, API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}},
			Subnets: []fakecloud.Subnet{{ID: "subnet-0a1b2c3d", Zone: importedFrom + "a", CIDR: "10.20.0.0/20"}},
		})
		hubConfig, err := fleet.Config(hub)
		Expect(err).NotTo(HaveOccurred())
		admin, err = client.New(hubConfig, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		var running context.Context
		running, end = context.WithCancel(context.WithoutCancel(ctx))
		go func() { ended <- cloud.Run(running, hubConfig) }()
	}, NodeTimeout(importTimeout))

	AfterAll(func() {
		end()
		Expect(<-ended).To(Succeed())
	})

	It("is enrolled, carries a claim and an Application, and is left as it is by un-import", func(ctx SpecContext) {
		importCluster(ctx)
		eventuallyImported(ctx)
		eventuallyConnected(ctx, imported)
		eventuallyServesRequirements(ctx, "w1")
		eventuallyServes(ctx, "w1", applicationsCRD)

		By("carrying a claim")
		claim(ctx, "w1", "of-an-import")
		DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, "w1", "of-an-import") })
		Eventually(agentSynced).WithArguments(ctx, "w1", "of-an-import").WithContext(ctx).Should(Equal("True/Synced"))
		eventuallyReady(ctx, "of-an-import")

		By("carrying an Application")
		inNamespace(ctx, "w1", "imported-blog")
		applySample(ctx, "w1", "imported-blog", "wordpress.yaml")
		playCloud(ctx, "w1", "imported-blog", "wordpress-webserver-svc")
		eventuallyApplication(ctx, "w1", "imported-blog", "wordpress", "{.status.health}").Should(Equal("Healthy"))

		By("un-importing it")
		kubectl(ctx, hub, "delete", "clusterimport", imported)
		Eventually(connection).WithArguments(ctx, imported).WithContext(ctx).Should(BeEmpty())
		Expect(leftOfImport(ctx, admin)).To(BeEmpty())
		Expect(agentSynced(ctx, "w1", "of-an-import")).To(Equal("True/Synced"))
		Expect(sourceInHub(ctx, "of-an-import")).NotTo(BeEmpty(), "what was provisioned stays")
		Expect(get(ctx, "w1", "{.metadata.name}", "statefulset", "wordpress-mysql", "--namespace", "imported-blog")).NotTo(BeEmpty())
	}, applicationTimeout)

	It("is shown with credentials that only read, and nothing is written to it", func(ctx SpecContext) {
		const name, eks, namespace, account = "viewed", "cafe4567", "customers", "imported-reader"
		repository, err := localfleet.Repository()
		Expect(err).NotTo(HaveOccurred())
		Expect(harness.Apply(ctx, fleet, "w3", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: imported-reader}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
`)).To(Succeed())
		config, err := fleet.Config("w3")
		Expect(err).NotTo(HaveOccurred())
		api, err := fakecloud.ServiceAccountAPI(ctx, config, account, "imported-reader")
		Expect(err).NotTo(HaveOccurred())
		cloud.AddEKS(fakecloud.EKS{
			Region: importedFrom, Name: eks, API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}},
			Subnets: []fakecloud.Subnet{{ID: "subnet-4a1b2c3d", Zone: importedFrom + "a", CIDR: "10.30.0.0/20"}},
		})
		Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: aws.m.upbound.io/v1beta1
kind: ProviderConfig
metadata: {namespace: %[1]s, name: customer}
spec: {credentials: {source: None}}
`, namespace))).To(Succeed())
		kubectl(ctx, hub, "apply", "--server-side", "-f", filepath.Join(repository, "config", "samples", "imports", "readonly-class.yaml"))
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "clusterimport", name, "--namespace", namespace, "--ignore-not-found")
			kubectl(ctx, hub, "delete", "enrollmentclass", "read-only")
		})
		Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: fleet.masthead.dev/v1alpha1
kind: ClusterImport
metadata: {namespace: %s, name: %s}
spec:
  eks: {region: %s, clusterName: %s, nodeGroupNames: [blue]}
  providerConfigRef: {name: customer}
  enroll: read-only
`, namespace, name, importedFrom, eks))).To(Succeed())

		By("saying what the credentials may do")
		is := func(kind, object, condition string) AsyncAssertion {
			path := fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.status}/{.reason}{end}`, condition)
			return Eventually(get).WithArguments(ctx, hub, path, kind, object, "--namespace", namespace).WithContext(ctx)
		}
		is("clusterimport", name, "Ready").Should(Equal("True/Imported"))
		is("clusterimport", name, "WorkloadAccess").Should(Equal("True/ReadOnly"))

		By("showing the connection, the health, the version and the pools")
		is("clusterprofiles", "capi-"+name, "Connected").Should(Equal("True/Connected"))
		is("clusterprofiles", "capi-"+name, "ControlPlaneHealthy").Should(Equal("True/Healthy"))
		Expect(get(ctx, hub, "{.status.version.kubernetes}", "clusterprofiles", "capi-"+name, "--namespace", namespace)).NotTo(BeEmpty())
		Eventually(get).WithArguments(ctx, hub, "{.spec.clusterName}", "machinepools", reflection.PoolName(name, "blue"), "--namespace", namespace).
			WithContext(ctx).Should(Equal(name))

		By("writing nothing to it")
		Expect(readWrites(ctx, "w3", "system:serviceaccount:default:"+account)).To(BeEmpty())
		kubectl(ctx, hub, "delete", "clusterimport", name, "--namespace", namespace)
		Expect(readWrites(ctx, "w3", "system:serviceaccount:default:"+account)).To(BeEmpty())
	}, applicationTimeout)

	// TestImportSurvivesKills kills an importer after each of its writes, for all clouds. Here a process is killed: when
	// the first object exists, when one in the middle does, and when the last does.
	It("is imported and un-imported although the manager is killed on the way", func(ctx SpecContext) {
		steps := importSteps()
		for _, step := range []schema.GroupVersionKind{steps[0], steps[len(steps)/2], steps[len(steps)-1]} {
			By("killing the manager when there is a " + step.Kind)
			importCluster(ctx)
			Eventually(countObjects).WithArguments(ctx, admin, step).WithContext(ctx).WithPolling(pollingOfSteps).ShouldNot(BeZero())
			Expect(manager.Kill(ctx)).To(Succeed())
			startManager(ctx)
			eventuallyImported(ctx)
			for _, kind := range steps {
				Eventually(countObjects).WithArguments(ctx, admin, kind).WithContext(ctx).Should(Equal(1), "there is one %s", kind.Kind)
			}

			By("killing the manager when the " + step.Kind + " has gone")
			kubectl(ctx, hub, "delete", "clusterimport", imported, "--wait=false")
			Eventually(countObjects).WithArguments(ctx, admin, step).WithContext(ctx).WithPolling(pollingOfSteps).Should(BeZero())
			Expect(manager.Kill(ctx)).To(Succeed())
			startManager(ctx)
			Eventually(get).WithArguments(ctx, hub, "{.metadata.name}", "clusterimport", imported).WithContext(ctx).Should(BeEmpty())
			Expect(leftOfImport(ctx, admin)).To(BeEmpty())
		}
		Eventually(connection).WithArguments(ctx, imported).WithContext(ctx).Should(BeEmpty())
	}, SpecTimeout(importTimeout))
})

// installImports installs in the hub what imports from EKS need: the kinds of the providers, the shipped rights and
// policies, and a provider configuration.
func installImports(ctx context.Context) {
	GinkgoHelper()
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	crds := GinkgoT().TempDir()
	_, err = providercrds.Write(ctx, crds, providercrds.Imports()...)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, hub, "apply", "--server-side", "-f", crds)
	// kubectl wait fails if a definition has no status yet.
	for _, crd := range []string{
		"clusters.eks.aws.m.upbound.io", "providerconfigs.aws.m.upbound.io",
		"awsmanagedcontrolplanes.controlplane.cluster.x-k8s.io", "awsmanagedmachinepools.infrastructure.cluster.x-k8s.io",
	} {
		Eventually(get).WithArguments(ctx, hub, `{.status.conditions[?(@.type=="Established")].status}`, "crd", crd).WithContext(ctx).
			WithTimeout(5 * time.Minute).Should(Equal("True"))
	}
	kubectl(ctx, hub, "apply", "--server-side", "-k", filepath.Join(repository, "config", "imports"))
	Expect(harness.Apply(ctx, fleet, hub, `
apiVersion: aws.m.upbound.io/v1beta1
kind: ProviderConfig
metadata: {namespace: default, name: customer}
spec: {credentials: {source: None}}
`)).To(Succeed())
}

func importCluster(ctx context.Context) {
	GinkgoHelper()
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: fleet.masthead.dev/v1alpha1
kind: ClusterImport
metadata: {namespace: default, name: %s}
spec:
  eks: {region: %s, clusterName: %s, nodeGroupNames: [blue]}
  providerConfigRef: {name: customer}
  enroll: "true"
`, imported, importedFrom, importedEKS))).To(Succeed())
}

func eventuallyImported(ctx context.Context) {
	GinkgoHelper()
	Eventually(get).WithArguments(ctx, hub, `{range .status.conditions[?(@.type=="Ready")]}{.status}/{.reason}{end}`, "clusterimport", imported).
		WithContext(ctx).Should(Equal("True/Imported"))
}

// importSteps are the kinds of which an import of one pool creates one object each, in the order of their creation.
func importSteps() []schema.GroupVersionKind {
	managed := func(kind reflection.Kind) schema.GroupVersionKind { return kind.Namespaced().WithVersion("v1beta1") }
	kinds := []schema.GroupVersionKind{managed(reflection.EKSCluster), managed(reflection.EC2Subnet)}
	kinds = append(kinds, reflection.ReflectedKinds(reflection.EKS)...)
	return append(kinds, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
}

// countObjects is the number of objects of a kind that have the label of the import.
func countObjects(ctx context.Context, c client.Client, kind schema.GroupVersionKind) (int, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := c.List(ctx, list, client.MatchingLabels{"fleet.masthead.dev/import-name": imported})
	return len(list.Items), err
}

// readWrites returns what a user tried to change in a cluster, from its audit log. Requests for the user's own rights
// or identity change nothing. It is an error if the user has sent no request at all.
func readWrites(_ context.Context, cluster, user string) ([]string, error) {
	requests, err := readRequests(cluster, user)
	if err != nil {
		return nil, err
	}
	var writes []string
	for request := range requests {
		if request.Writes() && !strings.HasPrefix(request.Resource, "selfsubject") {
			writes = append(writes, request.Verb+" "+request.Resource)
		}
	}
	return writes, nil
}

// leftOfImport counts the objects that have the label of the import, by kind.
func leftOfImport(ctx context.Context, c client.Client) (string, error) {
	var left []string
	for _, kind := range importSteps() {
		n, err := countObjects(ctx, c, kind)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", errors.Join(errors.New(kind.Kind), err)
		}
		if n > 0 {
			left = append(left, fmt.Sprint(n, " ", kind.Kind))
		}
	}
	return strings.Join(left, ", "), nil
}
