// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const (
	importedFrom = "eu-central-1"

	// importTimeout is the timeout for what is done once, and for a spec that kills the manager many times.
	importTimeout = 12 * time.Minute
	// pollingOfSteps is how often a spec checks for the moment at which it kills the manager.
	pollingOfSteps = 5 * time.Millisecond
)

// importedCluster is a cluster of the fleet that is imported from a cloud.
type importedCluster struct {
	cloud reflection.Cloud
	// cluster is its name in the fleet, name that of its import, and spec names it in the cloud.
	cluster, name, spec string
	// add creates it in the cloud, with one node pool.
	add func(cloud *fakecloud.Cloud, api fakecloud.API)
}

// importedClusters are one of each cloud. Their imports are side by side.
var importedClusters = []importedCluster{
	{
		cloud: reflection.EKS, cluster: "w1", name: "in-eks",
		spec: "eks: {region: " + importedFrom + ", clusterName: cafe0123, nodeGroupNames: [blue]}",
		add: func(cloud *fakecloud.Cloud, api fakecloud.API) {
			cloud.AddEKS(fakecloud.EKS{
				Region: importedFrom, Name: "cafe0123", API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}},
				Subnets: []fakecloud.Subnet{{ID: "subnet-0a1b2c3d", Zone: importedFrom + "a", CIDR: "10.20.0.0/20"}},
			})
		},
	},
	{
		cloud: reflection.AKS, cluster: "w2", name: "in-aks",
		spec: "aks: {resourceGroupName: shop-group, clusterName: shop, location: westeurope}",
		add: func(cloud *fakecloud.Cloud, api fakecloud.API) {
			cloud.AddAKS(fakecloud.AKS{ResourceGroup: "shop-group", Name: "shop", Location: "westeurope", API: api})
		},
	},
	{
		cloud: reflection.GKE, cluster: "w3", name: "in-gke",
		spec: "gke: {location: europe-west3, clusterName: shop}\n" +
			"  kubeconfig: {source: GoogleServiceAccount, google: {keySecretRef: {name: google-key, key: key.json}}}",
		add: func(cloud *fakecloud.Cloud, api fakecloud.API) {
			cloud.AddGKE(fakecloud.GKE{Location: "europe-west3", Name: "shop", API: api, NodePools: []fakecloud.GKENodePool{{Name: "blue"}}})
		},
	},
}

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
		cloud.FailOnMutation(GinkgoT())
		addClusters(ctx, cloud)
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
		importClusters(ctx)
		eventuallyImported(ctx)
		for _, i := range importedClusters {
			eventuallyConnected(ctx, i.name)
			eventuallyServesRequirements(ctx, i.cluster)
			eventuallyServes(ctx, i.cluster, applicationsCRD)
		}

		By("carrying a claim")
		for _, i := range importedClusters {
			claim(ctx, i.cluster, i.name)
			DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, i.cluster, i.name) })
		}
		for _, i := range importedClusters {
			Eventually(agentSynced).WithArguments(ctx, i.cluster, i.name).WithContext(ctx).Should(Equal("True/Synced"), i.name)
			eventuallyReady(ctx, i.name)
		}

		By("carrying an Application")
		for _, i := range importedClusters {
			inNamespace(ctx, i.cluster, "imported-blog")
			applySample(ctx, i.cluster, "imported-blog", "wordpress.yaml")
			playCloud(ctx, i.cluster, "imported-blog", "wordpress-webserver-svc")
		}
		for _, i := range importedClusters {
			eventuallyApplication(ctx, i.cluster, "imported-blog", "wordpress", "{.status.health}").Should(Equal("Healthy"), i.name)
		}

		By("un-importing it")
		unimportClusters(ctx)
		for _, i := range importedClusters {
			eventuallyUnimported(ctx, admin, i)
			Expect(agentSynced(ctx, i.cluster, i.name)).To(Equal("True/Synced"))
			Expect(sourceInHub(ctx, i.name)).NotTo(BeEmpty(), "what was provisioned stays")
			Expect(get(ctx, i.cluster, "{.metadata.name}", "statefulset", "wordpress-mysql", "--namespace", "imported-blog")).NotTo(BeEmpty())
		}
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

	// TestImportSurvivesKills kills an importer after each of its writes. Here a process is killed: when one of the
	// imports has its first object, when one has an object in the middle, and when one has the last.
	It("is imported and un-imported although the manager is killed on the way", func(ctx SpecContext) {
		for part, where := range []string{"first", "middle", "last"} {
			counts := func(ctx context.Context) (counts []int, err error) {
				for _, i := range importedClusters {
					steps := i.steps()
					n, err := countObjects(ctx, admin, i, steps[part*(len(steps)-1)/2])
					if err != nil {
						return nil, err
					}
					counts = append(counts, n)
				}
				return counts, nil
			}
			By("killing the manager when an import has its " + where + " object")
			importClusters(ctx)
			Eventually(counts).WithContext(ctx).WithPolling(pollingOfSteps).Should(ContainElement(Not(BeZero())))
			Expect(manager.Kill(ctx)).To(Succeed())
			startManager(ctx)
			eventuallyImported(ctx)
			for _, i := range importedClusters {
				for _, kind := range i.steps() {
					Eventually(countObjects).WithArguments(ctx, admin, i, kind).WithContext(ctx).Should(Equal(1), "%s has one %s", i.name, kind.Kind)
				}
			}

			By("killing the manager when an import has lost that object")
			unimportClusters(ctx)
			Eventually(counts).WithContext(ctx).WithPolling(pollingOfSteps).Should(ContainElement(BeZero()))
			Expect(manager.Kill(ctx)).To(Succeed())
			startManager(ctx)
			for _, i := range importedClusters {
				eventuallyUnimported(ctx, admin, i)
			}
		}
	}, SpecTimeout(importTimeout))
})

// installImports installs in the hub what imports need: the kinds of the providers, the shipped rights and policies,
// and provider configurations.
func installImports(ctx context.Context) {
	GinkgoHelper()
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	crds := GinkgoT().TempDir()
	written, err := providercrds.Write(ctx, crds, providercrds.Imports()...)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, hub, "apply", "--server-side", "-f", crds)
	// kubectl wait fails if a definition has no status yet.
	for _, crd := range written {
		Eventually(established).WithArguments(ctx, hub, strings.TrimSuffix(filepath.Base(crd), ".yaml")).WithContext(ctx).Should(Equal("True"))
	}
	kubectl(ctx, hub, "apply", "--server-side", "-k", filepath.Join(repository, "config", "imports"))
	Expect(harness.Apply(ctx, fleet, hub, `
apiVersion: aws.m.upbound.io/v1beta1
kind: ProviderConfig
metadata: {namespace: default, name: customer}
spec: {credentials: {source: None}}
---
apiVersion: azure.m.upbound.io/v1beta1
kind: ProviderConfig
metadata: {namespace: default, name: customer}
spec: {credentials: {source: None}, subscriptionID: 00000000-0000-0000-0000-000000000000}
---
apiVersion: gcp.m.upbound.io/v1beta1
kind: ProviderConfig
metadata: {namespace: default, name: customer}
spec: {credentials: {source: None}, projectID: shop-project}
`)).To(Succeed())
}

// addClusters creates the clusters in their clouds.
func addClusters(ctx context.Context, cloud *fakecloud.Cloud) {
	GinkgoHelper()
	for _, i := range importedClusters {
		config, err := fleet.Config(i.cluster)
		Expect(err).NotTo(HaveOccurred())
		api, err := fakecloud.ServiceAccountAPI(ctx, config, "imported", "cluster-admin")
		Expect(err).NotTo(HaveOccurred())
		i.add(cloud, api)
		if i.cloud == reflection.GKE {
			serveTokens(ctx, api)
		}
	}
}

// serveTokens starts the endpoint that gives a Google service account tokens for a cluster, creates the Secret with the
// account's key, and restarts the manager with trust in the endpoint.
func serveTokens(ctx context.Context, api fakecloud.API) {
	GinkgoHelper()
	tokens := fakecloud.NewTokenEndpoint(int(10 * time.Minute / time.Second))
	DeferCleanup(tokens.Close)
	key, err := tokens.GoogleKey("/token", api.Token)
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {namespace: default, name: google-key, labels: {fleet.masthead.dev/import-credentials: "true"}}
data: {key.json: %s}
`, base64.StdEncoding.EncodeToString(key)))).To(Succeed())
	authority := filepath.Join(GinkgoT().TempDir(), "ca.pem")
	Expect(os.WriteFile(authority, tokens.Authority(), 0o600)).To(Succeed())
	GinkgoT().Setenv("SSL_CERT_FILE", authority)
	flags := managerFlags
	DeferCleanup(func() { managerFlags = flags })
	managerFlags = append(slices.Clone(flags), "--allowed-token-endpoints="+tokens.URL()+"/")
	restartManager(ctx)
}

func importClusters(ctx context.Context) {
	GinkgoHelper()
	var imports strings.Builder
	for _, i := range importedClusters {
		fmt.Fprintf(&imports, `---
apiVersion: fleet.masthead.dev/v1alpha1
kind: ClusterImport
metadata: {namespace: default, name: %s}
spec:
  %s
  providerConfigRef: {name: customer}
  enroll: "true"
`, i.name, i.spec)
	}
	Expect(harness.Apply(ctx, fleet, hub, imports.String())).To(Succeed())
}

func eventuallyImported(ctx context.Context) {
	GinkgoHelper()
	for _, i := range importedClusters {
		Eventually(get).WithArguments(ctx, hub, conditionPath("Ready"), "clusterimport", i.name).WithContext(ctx).
			Should(Equal("True/Imported"), i.name)
	}
}

func unimportClusters(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, hub, "delete", "clusterimport", "--all", "--namespace", "default", "--wait=false")
}

func eventuallyUnimported(ctx context.Context, admin client.Client, i importedCluster) {
	GinkgoHelper()
	Eventually(get).WithArguments(ctx, hub, "{.metadata.name}", "clusterimport", i.name).WithContext(ctx).Should(BeEmpty())
	Expect(leftOfImport(ctx, admin, i)).To(BeEmpty(), i.name)
	Eventually(connection).WithArguments(ctx, i.name).WithContext(ctx).Should(BeEmpty())
}

// steps are the kinds of which the import creates one object each, in the order of their creation.
func (i importedCluster) steps() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range reflection.Kinds(i.cloud) {
		// No import names a route table, and the one of AKS names no pool beside the default one.
		if kind != reflection.EC2RouteTable && kind != reflection.AKSNodePool {
			kinds = append(kinds, kind.Namespaced().WithVersion("v1beta1"))
		}
	}
	kinds = append(kinds, importertest.ReflectedKinds(i.cloud)...)
	return append(kinds, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
}

// countObjects is the number of objects of a kind that have the label of an import.
func countObjects(ctx context.Context, c client.Client, i importedCluster, kind schema.GroupVersionKind) (int, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := c.List(ctx, list, client.MatchingLabels{"fleet.masthead.dev/import-name": i.name})
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

// leftOfImport counts the objects that have the label of an import, by kind.
func leftOfImport(ctx context.Context, c client.Client, i importedCluster) (string, error) {
	var left []string
	for _, kind := range i.steps() {
		n, err := countObjects(ctx, c, i, kind)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", errors.Join(errors.New(kind.Kind), err)
		}
		if n > 0 {
			left = append(left, fmt.Sprint(n, " ", kind.Kind))
		}
	}
	return strings.Join(left, ", "), nil
}
