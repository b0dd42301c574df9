// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// TestImportBesideClusterAPICore makes the importer itself import and un-import a cluster, for which the cloud gives it
// an administrator's credentials, while Cluster API core itself runs. The audit log of the cluster shows no write, and
// nothing is left in the hub. With a ServiceAccount of the cluster, those credentials request its tokens and nothing
// else, and core has the token.
func TestImportBesideClusterAPICore(t *testing.T) { //nolint:tparallel // Its steps share the fleet.
	t.Parallel() // It has its own fleet.
	f := newCoreFleet(t, testenv.CRDs(), importCRDs(t))
	clusterConfig, err := f.fleet.Config("w1")
	if err != nil {
		t.Fatal(err)
	}
	cloud := fakecloud.New()
	cloud.FailOnMutation(t)
	f.applySample(t, "serviceaccount.yaml")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"eks.amazonaws.com/nodegroup": "blue"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/i-0a1b2c3d"},
	}
	if err := f.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	installPolicies(t, f.hub)
	createProviderConfigs(t, f.hub)
	hubConfig, err := f.fleet.Config(localfleet.HubName)
	if err != nil {
		t.Fatal(err)
	}
	f.imports = runImports(t, hubConfig, cloud, importer.Options{})
	for _, tc := range []struct {
		reason, cluster, account string
		customer                 customer
		kubeconfig               *fleetv1alpha1.ImportKubeconfig
		check                    func(t *testing.T, user string)
	}{
		{"Without an account the credentials of the cloud only read.", "cafe0123", "imported", eksCustomer(), nil, f.onlyRead},
		{"Nor do those that Azure gives.", "cafe0125", "imported-aks", aksCustomer(), nil, f.onlyRead},
		{
			"For GKE the user keeps a token.", "cafe0126", "imported-gke", gkeCustomer(),
			&fleetv1alpha1.ImportKubeconfig{
				Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "imported-gke", Key: "token"},
			},
			f.onlyRead,
		},
		{
			"With one they ask for its tokens, and the tokens read.", "cafe0124", "asks-only", eksCustomer(),
			&fleetv1alpha1.ImportKubeconfig{ServiceAccountRef: &fleetv1alpha1.ServiceAccountReference{Namespace: "masthead-import", Name: "reader"}},
			func(t *testing.T, user string) {
				t.Helper()
				f.onlyRequestedTokens(t, user, "reader")
				f.onlyRead(t, "system:serviceaccount:masthead-import:reader")
			},
		},
	} {
		t.Run(tc.account, func(t *testing.T) {
			t.Log(tc.reason)
			api, err := fakecloud.ServiceAccountAPI(t.Context(), clusterConfig, tc.account, "cluster-admin")
			if err != nil {
				t.Fatal(err)
			}
			tc.customer.add(cloud, tc.cluster, api)
			if tc.customer.cloud == reflection.GKE {
				f.createToken(t, tc.account, api)
			}
			imp := tc.customer.newImport("shop-"+tc.account, tc.cluster)
			imp.Spec.Kubeconfig = tc.kubeconfig
			f.importAndUnimport(t, imp)
			// The cluster's own controllers write to it; the audit log shows who else did.
			now := &corev1.Node{}
			if err := f.cluster.Get(t.Context(), client.ObjectKeyFromObject(node), now); err != nil || now.UID != node.UID {
				t.Errorf("the Node of the cluster is gone: %v", err)
			}
			tc.check(t, "system:serviceaccount:default:"+tc.account)
		})
	}
}

// createToken creates a Secret that imports may use, with a token of an imported cluster.
func (f *coreFleet) createToken(t *testing.T, name string, api fakecloud.API) {
	t.Helper()
	token, err := api.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	createUntilTheEnd(t, f.hub, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: "true"}},
		StringData: map[string]string{"token": token},
	})
}

// importAndUnimport imports a cluster, waits until core is connected to it and works on its MachinePool, and then
// un-imports it.
func (f *coreFleet) importAndUnimport(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	if err := f.imports.Create(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	row := &coreRow{coreFleet: *f, name: imp.Name}
	row.t = t
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	cluster.SetNamespace(namespace)
	cluster.SetName(imp.Name)
	row.waitCondition(cluster, "RemoteConnectionProbe", "True")
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachinePool"))
	pool.SetNamespace(namespace)
	pool.SetName(reflection.PoolName(imp.Name, "blue"))
	row.waitFor("core has put its finalizer on the MachinePool", func(ctx context.Context) (bool, string) {
		err := f.hub.Get(ctx, client.ObjectKeyFromObject(pool), pool)
		return len(pool.GetFinalizers()) > 0, fmt.Sprint(err)
	})

	if err := f.imports.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	row.waitFor("the import is gone", func(ctx context.Context) (bool, string) {
		err := f.imports.Get(ctx, client.ObjectKeyFromObject(imp), imp)
		return apierrors.IsNotFound(err), fmt.Sprint(imp.Status.Conditions)
	})
	for _, o := range []*unstructured.Unstructured{cluster, pool} {
		if err := f.hub.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%s %q is left: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// applySample applies a sample for imports in the cluster.
func (f *coreFleet) applySample(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(filepath.Join("../../config/samples/imports", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := f.cluster.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// importCRDs writes the CRDs that imports need beside those that Cluster API core watches.
func importCRDs(t *testing.T) string {
	t.Helper()
	return writeCRDs(t, slices.Concat(providercrds.ModernManagedResources(), providercrds.Identities(), providerConfigs())...)
}

// providerConfigs are the kinds of the configurations that the imports name.
func providerConfigs() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, group := range []string{"aws", "azure", "gcp"} {
		kinds = append(kinds, schema.GroupKind{Group: group + ".m.upbound.io", Kind: "ProviderConfig"})
	}
	return kinds
}

// installPolicies installs the admission policies until the test ends.
func installPolicies(t *testing.T, hub client.Client) {
	t.Helper()
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		createUntilTheEnd(t, hub, p.Policy)
		createUntilTheEnd(t, hub, p.Binding)
	}
}

// createProviderConfigs creates the configurations that the imports name.
func createProviderConfigs(t *testing.T, hub client.Client) {
	t.Helper()
	for _, kind := range providerConfigs() {
		config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{"source": "None"}}}}
		config.SetGroupVersionKind(kind.WithVersion("v1beta1"))
		config.SetNamespace(namespace)
		config.SetName("customer")
		_ = unstructured.SetNestedField(config.Object, fakecloud.DefaultProjectID, "spec", "projectID")
		createUntilTheEnd(t, hub, config)
	}
}

func createUntilTheEnd(t *testing.T, hub client.Client, o client.Object) {
	t.Helper()
	if err := hub.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), o) })
}

// runImports runs the importer and the providers of a cloud in a hub until the test ends, and returns a client for it.
func runImports(t *testing.T, hubConfig *rest.Config, cloud *fakecloud.Cloud, o importer.Options) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	unchecked := true
	o.Credentials, o.SkipNameValidation = credentials.Options{AllowLoopback: true}, &unchecked
	if err := importer.SetupWithManager(mgr, o); err != nil {
		t.Fatal(err)
	}
	imports, err := client.New(hubConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 2)
	go func() { done <- cloud.Run(ctx, hubConfig) }()
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	return imports
}

// requests returns the requests of a user in the audit log of the cluster.
func (f *coreFleet) requests(t *testing.T, user string) auditlog.Counts {
	t.Helper()
	content, err := os.ReadFile(f.fleet.AuditLog("w1"))
	if err != nil {
		t.Fatal(err)
	}
	requests, err := auditlog.Count(content[:bytes.LastIndexByte(content, '\n')+1], user)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// onlyRequestedTokens checks that a user requested tokens of one ServiceAccount and nothing else, not even reads. The
// cluster does not store these tokens.
func (f *coreFleet) onlyRequestedTokens(t *testing.T, user, account string) {
	t.Helper()
	tokens := 0
	for request, n := range f.requests(t, user) {
		if request.Verb == "create" && request.Resource == "serviceaccounts/token" && request.Name == account {
			tokens += n
			continue
		}
		t.Errorf("%s requested something else than a token of %s: %s %s %s", user, account, request.Verb, request.Resource, request.Name)
	}
	if tokens == 0 {
		t.Errorf("%s never requested a token; the test proves nothing", user)
	}
}

// onlyRead checks in the audit log of the cluster that a user sent requests and changed nothing. A request for one's
// own rights changes nothing.
func (f *coreFleet) onlyRead(t *testing.T, user string) {
	t.Helper()
	reads := 0
	for request, n := range f.requests(t, user) {
		switch {
		case !request.Writes():
			reads += n
		case request.Resource != "selfsubjectaccessreviews":
			t.Errorf("%s changed the cluster: %s %s", user, request.Verb, request.Resource)
		}
	}
	if reads == 0 {
		t.Errorf("%s sent the cluster no request; the test proves nothing", user)
	}
}

// customer is a customer's cluster in a cloud, with the pool "blue".
type customer struct {
	cloud reflection.Cloud
	// add creates the cluster, whose name consists of hexadecimal digits.
	add func(c *fakecloud.Cloud, name string, api fakecloud.API)
	// names is the spec of an import of it.
	names func(name string) fleetv1alpha1.ClusterImportSpec
}

func (c customer) newImport(name, cluster string) *fleetv1alpha1.ClusterImport {
	imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: c.names(cluster)}
	imp.Spec.ProviderConfigRef.Name = "customer"
	return imp
}

func eksCustomer() customer {
	return customer{
		cloud: reflection.EKS,
		add: func(c *fakecloud.Cloud, name string, api fakecloud.API) {
			c.AddEKS(fakecloud.EKS{
				Region: region, Name: name, API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}},
				Subnets: []fakecloud.Subnet{{ID: "subnet-0a1b2c3d", Zone: region + "a", CIDR: "10.20.0.0/20"}},
			})
		},
		names: func(name string) fleetv1alpha1.ClusterImportSpec {
			return fleetv1alpha1.ClusterImportSpec{EKS: &fleetv1alpha1.EKSImport{Region: region, ClusterName: name, NodeGroupNames: []string{"blue"}}}
		},
	}
}

func aksCustomer() customer {
	return customer{
		cloud: reflection.AKS,
		add: func(c *fakecloud.Cloud, name string, api fakecloud.API) {
			c.AddAKS(fakecloud.AKS{
				ResourceGroup: "shop", Name: name, Location: "westeurope", API: api, Admin: api, NodePools: []fakecloud.AKSNodePool{{Name: "blue"}},
			})
		},
		names: func(name string) fleetv1alpha1.ClusterImportSpec {
			return fleetv1alpha1.ClusterImportSpec{
				AKS:       &fleetv1alpha1.AKSImport{ResourceGroupName: "shop", ClusterName: name, Location: "westeurope"},
				NodePools: fleetv1alpha1.ImportNodePools{Names: []string{"blue"}},
			}
		},
	}
}

func gkeCustomer() customer {
	return customer{
		cloud: reflection.GKE,
		add: func(c *fakecloud.Cloud, name string, api fakecloud.API) {
			c.AddGKE(fakecloud.GKE{Location: "europe-west3", Name: name, API: api, NodePools: []fakecloud.GKENodePool{{Name: "blue"}}})
		},
		names: func(name string) fleetv1alpha1.ClusterImportSpec {
			return fleetv1alpha1.ClusterImportSpec{GKE: &fleetv1alpha1.GKEImport{Location: "europe-west3", ClusterName: name}}
		},
	}
}
