// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// life is what differs from one import to another.
type life struct {
	imp *fleetv1alpha1.ClusterImport
	// pools of the cluster. The second one is deleted.
	pools [2]string
	// goes removes the second pool from the cloud; shownBy is the managed resource that shows it.
	goes    func() bool
	shownBy reflection.Kind
	// changes gives the cluster another version, and its first pool another size, and returns both.
	changes func() (version string, replicas int64)
	// rotates gives the cluster new credentials; publishedBy is the managed resource whose change the importer reacts to.
	// Without rotates, the credentials change by themselves.
	rotates     func()
	publishedBy reflection.Kind
}

// live runs an import through its life: the cluster is reflected with its pools, connected to with credentials that
// only read, and can be enrolled; the credentials rotate; the cluster changes; a pool is deleted; un-import leaves
// nothing.
func (w *world) live(t *testing.T, l life) {
	t.Helper()
	w.Cloud.FailOnMutation(t)
	imp := l.imp
	imp.Spec.Enroll = "gold"
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	capi := &clusterv1.Cluster{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Labels[fleetv1alpha1.EnrollLabel] != "gold" || capi.Labels[fleetv1alpha1.ImportedLabel] != "true" {
		t.Errorf("the Cluster is not labelled: %v", capi.Labels)
	}
	infraPool := importertest.ReflectedKinds(reflection.Cloud(imp.Spec.Cloud()))
	of := func(pool string) []string {
		name := reflection.PoolName(imp.Name, pool)
		return []string{"MachinePool/" + name, infraPool[len(infraPool)-3].Kind + "/" + name}
	}
	importertest.Eventually(t, "both pools are reflected", func() (bool, string) {
		all := w.ListMade(t, imp)
		return containsAll(all, append(of(l.pools[0]), of(l.pools[1])...)), fmt.Sprint(all)
	})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
	importertest.Eventually(t, "it is known when the cluster was created", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return err == nil && (imp.Spec.EKS != nil || imp.Status.Observed.CreationTime != nil), fmt.Sprint(err)
	})
	w.CheckPausedAndObserving(t, imp)
	w.credentialsRotate(t, l)
	w.changesAreReflected(t, l)

	if !l.goes() {
		t.Fatal("the pool was not there")
	}
	w.TouchManaged(t, imp, l.shownBy)
	importertest.Eventually(t, "the reflection of the pool is gone, and nothing else", func() (bool, string) {
		all := w.ListMade(t, imp)
		return containsAll(all, of(l.pools[0])) && !slices.ContainsFunc(of(l.pools[1]), func(o string) bool { return slices.Contains(all, o) }), fmt.Sprint(all)
	})
	w.credentialsAreTakenBack(t, imp)
	w.Unimport(t, imp)
}

// credentialsAreTakenBack ends the request for credentials, which ends the connection and nothing else.
func (w *world) credentialsAreTakenBack(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	before := imp.DeepCopy()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
	if err := w.Client.Patch(t.Context(), imp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested)
	key := client.ObjectKeyFromObject(imp)
	secret := client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-kubeconfig"}
	if err := w.Client.Get(t.Context(), secret, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("want no kubeconfig, got %v", err)
	}
	if err := w.Client.Get(t.Context(), key, &clusterv1.Cluster{}); err != nil {
		t.Errorf("want the Cluster to stay, got %v", err)
	}
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

// changesAreReflected upgrades the cluster and scales a pool in the cloud, and enrols the cluster with another class,
// as its user would.
func (w *world) changesAreReflected(t *testing.T, l life) {
	t.Helper()
	imp := l.imp
	version, replicas := l.changes()
	before := imp.DeepCopy()
	imp.Spec.Enroll = "silver"
	if err := w.Client.Patch(t.Context(), imp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.TouchManaged(t, imp, reflection.Kinds(reflection.Cloud(imp.Spec.Cloud()))[0])
	w.TouchManaged(t, imp, l.shownBy)
	controlPlane := &unstructured.Unstructured{}
	kinds := importertest.ReflectedKinds(reflection.Cloud(imp.Spec.Cloud()))
	controlPlane.SetGroupVersionKind(kinds[len(kinds)-4])
	importertest.Eventually(t, "the control plane has the version "+version, func() (bool, string) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), controlPlane); err != nil {
			return false, err.Error()
		}
		now, _, _ := unstructured.NestedString(controlPlane.Object, "spec", "version")
		return strings.TrimPrefix(now, "v") == version, now
	})
	pool := &clusterv1.MachinePool{}
	importertest.Eventually(t, "the pool has another size", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: reflection.PoolName(imp.Name, l.pools[0])}, pool)
		return err == nil && pool.Spec.Replicas != nil && int64(*pool.Spec.Replicas) == replicas, fmt.Sprint(err)
	})
	capi := &clusterv1.Cluster{}
	importertest.Eventually(t, "the Cluster has the next label", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), capi)
		return err == nil && capi.Labels[fleetv1alpha1.EnrollLabel] == "silver", fmt.Sprint(err, capi.Labels)
	})
}

func containsAll(all, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(all, s) })
}

// credentialsRotate checks that the same Secret holds the next token, which is no reason to connect again, and that
// both tokens work.
func (w *world) credentialsRotate(t *testing.T, l life) {
	t.Helper()
	secret, before := w.kubeconfig(t, l.imp)
	if secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != l.imp.Name {
		t.Errorf("the Secret is not one of Cluster API: %s %v", secret.Type, secret.Labels)
	}
	works(t, before)
	if l.rotates != nil {
		l.rotates()
	}
	importertest.Eventually(t, "the kubeconfig follows the token", func() (bool, string) {
		if l.publishedBy != (reflection.Kind{}) {
			w.TouchManaged(t, l.imp, l.publishedBy)
		}
		now, after := w.kubeconfig(t, l.imp)
		if after.Token() == before.Token() {
			return false, "the token is the same"
		}
		if now.UID != secret.UID || credentials.Compare(before, after) != credentials.TokenChanged {
			t.Fatalf("connected clients would have to reconnect: %v", credentials.Compare(before, after))
		}
		works(t, after)
		return true, ""
	})
}

// kubeconfig is the one that Cluster API finds.
func (w *world) kubeconfig(t *testing.T, imp *fleetv1alpha1.ClusterImport) (*corev1.Secret, *credentials.Credentials) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: imp.Name + "-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	parsed, err := credentials.Parse(secret.Data["value"], credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return secret, parsed
}

// works lists the Nodes of the cluster.
func works(t *testing.T, k *credentials.Credentials) {
	t.Helper()
	config := k.RESTConfig()
	config.BearerToken = k.Token()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Errorf("the kubeconfig does not work: %v", err)
	}
}

// eksLife is a cluster of EKS, with the token that ClusterAuth publishes.
func (w *world) eksLife(t *testing.T, name, cluster string) life {
	t.Helper()
	w.AddEKS(t, cluster, "blue", "green")
	return life{
		imp:   withRouteTable(importertest.NewEKSImport(name, cluster, "blue", "green")),
		pools: [2]string{"blue", "green"},
		goes:  func() bool { return w.Cloud.RemoveNodeGroup(importertest.Region, cluster, "green") }, shownBy: reflection.EKSNodeGroup,
		changes: func() (string, int64) {
			w.Cloud.ChangeEKS(
				importertest.Region,
				cluster,
				map[string]any{"version": "1.32", "endpoint": "https://moved.eu-central-1.eks.example.org"},
			)
			w.Cloud.AddNodeGroup(importertest.Region, cluster, fakecloud.NodeGroup{Name: "blue", Min: 2, Desired: 3, Max: 9})
			return "1.32", 3
		},
		rotates: w.Cloud.RotateTokens, publishedBy: reflection.EKSClusterAuth,
	}
}

// withRouteTable lets the route table of a subnet show whether the subnet is public.
func withRouteTable(imp *fleetv1alpha1.ClusterImport) *fleetv1alpha1.ClusterImport {
	imp.Spec.Subnets = &fleetv1alpha1.SubnetHints{Overrides: []fleetv1alpha1.SubnetOverride{{ID: "subnet-0a1b2c3d", RouteTableID: "rtb-0a1b2c3d"}}}
	return imp
}

func TestEKSImport(t *testing.T) { modern(t).live(t, modern(t).eksLife(t, "shop", "cafe0123")) }

// TestLegacyImports: a hub with the cluster-scoped managed resources alone.
func TestLegacyImports(t *testing.T) {
	legacy, stop, err := startWorld(t.Context(), importertest.LegacyKinds())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	legacy.live(t, legacy.eksLife(t, "legacy", "cafe0124"))
	legacy.live(t, legacy.aksLife(t, "legacy-aks", nil, nil))
	legacy.live(t, legacy.gkeLifeWithKey(t, "legacy-gke"))
}

// credentialsSecret is a Secret that imports may name.
func credentialsSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: "true"},
		},
		Data: data,
	}
}

const resourceGroup = "shop-group"

// aksLife is a cluster of AKS with the pools "system", which is its default one, and "apps".
func (w *world) aksLife(t *testing.T, name string, k *fleetv1alpha1.ImportKubeconfig, change func(*fakecloud.AKS)) life {
	t.Helper()
	cluster := fakecloud.AKS{
		ResourceGroup: resourceGroup,
		Name:          name,
		Location:      "westeurope",
		API:           w.CreateAPI(t, name, importertest.Reader),
		Admin:         w.CreateAPI(t, name+"-admin", importertest.Admin),
		NodePools:     []fakecloud.AKSNodePool{{Name: "apps"}},
	}
	if change != nil {
		change(&cluster)
	}
	w.Cloud.AddAKS(cluster)
	return life{
		imp: importertest.NewImport(name, fleetv1alpha1.ClusterImportSpec{
			AKS:        &fleetv1alpha1.AKSImport{ResourceGroupName: resourceGroup, ClusterName: name, Location: "westeurope"},
			NodePools:  fleetv1alpha1.ImportNodePools{Names: []string{"apps"}},
			Kubeconfig: k,
		}),
		pools:   [2]string{"system", "apps"},
		goes:    func() bool { return w.Cloud.RemoveAKSNodePool(fakecloud.AKSClusterID(resourceGroup, name), "apps") },
		shownBy: reflection.AKSNodePool,
		changes: func() (string, int64) {
			w.Cloud.ChangeAKS(fakecloud.AKSClusterID(resourceGroup, name), map[string]any{
				"currentKubernetesVersion": "1.32.4", "defaultNodePool": map[string]any{"nodeCount": 4, "maxCount": 9},
			})
			return "1.32.4", 4
		},
		rotates: w.Cloud.RotateTokens, publishedBy: reflection.AKSCluster,
	}
}

func TestAKSImport(t *testing.T) { modern(t).live(t, modern(t).aksLife(t, "aks", nil, nil)) }

// TestAKSImportWithEntraID: the provider's kubeconfig runs kubelogin, so the token is obtained with a service
// principal.
func TestAKSImportWithEntraID(t *testing.T) {
	const name = "entra"
	principal := fakecloud.ServicePrincipal{
		TenantID: "11111111-2222-3333-4444-555555555555", ClientID: "22222222-2222-3333-4444-555555555555", Secret: "of-the-principal",
	}
	modern(t).Tokens.AddServicePrincipal(principal, modern(t).CreateAPI(t, name, importertest.Reader).Token)
	modern(t).Create(t, credentialsSecret("principal", map[string][]byte{"secret": []byte(principal.Secret)}))
	l := modern(t).aksLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceAzureServicePrincipal,
		Azure: &fleetv1alpha1.AzureServicePrincipal{
			TenantID: principal.TenantID, ClientID: principal.ClientID, AuthorityHost: fleetv1alpha1.HTTPSURL(modern(t).Tokens.URL()),
			ClientSecretRef: fleetv1alpha1.SecretKeyReference{Name: "principal", Key: "secret"},
		},
	}, entraID)
	l.rotates, l.publishedBy = nil, reflection.Kind{}
	modern(t).live(t, l)
}

// entraID means that users log in with Entra ID. The address is that of the test's API server, whose port the
// kubeconfig names.
func entraID(cluster *fakecloud.AKS) {
	cluster.EntraID, cluster.AtProvider = true, map[string]any{"fqdn": "127.0.0.1"}
}

// TestAdministratorOfAKSIsOnlyUsedOnRequest: the connection Secret always holds the cluster administrator's kubeconfig,
// too.
func TestAdministratorOfAKSIsOnlyUsedOnRequest(t *testing.T) {
	modern(t).Cloud.FailOnMutation(t)
	imp := modern(t).aksLife(t, "kubelogin", nil, entraID).imp
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigRefused)
	key := client.ObjectKey{Namespace: imp.Namespace, Name: "kubelogin-kubeconfig"}
	if err := modern(t).Client.Get(t.Context(), key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("want no kubeconfig where the user's is refused, got %v", err)
	}
	before := imp.DeepCopy()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{User: fleetv1alpha1.KubeconfigUserAdmin}
	if err := modern(t).Client.Patch(t.Context(), imp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessAdmin)
	modern(t).Unimport(t, imp)
}

// TestConnectionSecretOfAKSGoesWithItsSource: the provider does not delete the administrator's kubeconfig when its
// managed resource no longer asks for it. A Secret of that name that is not the provider's stays.
func TestConnectionSecretOfAKSGoesWithItsSource(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	imp := w.aksLife(t, "unpublished", nil, nil).imp
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	key := client.ObjectKey{Namespace: imp.Namespace, Name: "unpublished-import-connection"}
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), key, secret); err != nil || len(secret.Data["attribute.kube_admin_config_raw"]) == 0 {
		t.Fatalf("want a connection Secret with the administrator's kubeconfig, got %v, %v", secret.Data, err)
	}
	before := imp.DeepCopy()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
	if err := w.Client.Patch(t.Context(), imp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	isGone := func() (bool, string) {
		err := w.Client.Get(t.Context(), key, secret)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	}
	importertest.Eventually(t, "the connection Secret is gone", isGone)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested)

	w.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	w.Cloud.ChangeAKS(fakecloud.AKSClusterID(resourceGroup, "unpublished"), map[string]any{"currentKubernetesVersion": "1.33.1"})
	w.TouchManaged(t, imp, reflection.AKSCluster)
	importertest.Eventually(t, "the next pass", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return err == nil && imp.Status.Observed.Version == "1.33.1", fmt.Sprint(err, imp.Status.Observed)
	})
	if gone, _ := isGone(); gone {
		t.Error("a Secret that is not the provider's was deleted")
	}
	w.Unimport(t, imp)
	_ = w.Client.Delete(t.Context(), secret)
}

// gkeLife is a cluster of GKE, which lists its pools itself.
func (w *world) gkeLife(t *testing.T, name string, k *fleetv1alpha1.ImportKubeconfig) life {
	t.Helper()
	const location = "europe-west3"
	w.Cloud.AddGKE(fakecloud.GKE{
		Location:  location,
		Name:      name,
		API:       w.CreateAPI(t, name, importertest.Reader),
		NodePools: []fakecloud.GKENodePool{{Name: "blue"}, {Name: "green"}},
	})
	return life{
		imp: importertest.NewImport(name, fleetv1alpha1.ClusterImportSpec{
			GKE: &fleetv1alpha1.GKEImport{Location: location, ClusterName: name}, Kubeconfig: k,
		}),
		pools: [2]string{"blue", "green"},
		goes:  func() bool { return w.Cloud.RemoveGKENodePool("", location, name, "green") }, shownBy: reflection.GKECluster,
		changes: func() (string, int64) {
			const version = "1.32.1-gke.1200003"
			w.Cloud.ChangeGKE("", location, name, map[string]any{"masterVersion": version})
			w.Cloud.AddGKENodePool("", location, name, fakecloud.GKENodePool{Name: "blue", NodesPerZone: 2, AtProvider: map[string]any{
				"autoscaling": map[string]any{"maxNodeCount": 9},
			}})
			return version, 2
		},
	}
}

// gkeLifeWithKey is a cluster of GKE, with the token of a service account of Google.
func (w *world) gkeLifeWithKey(t *testing.T, name string) life {
	t.Helper()
	key, err := w.Tokens.GoogleKey("/google/"+name, w.CreateAPI(t, name, importertest.Reader).Token)
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, credentialsSecret("google", map[string][]byte{"key.json": key}))
	return w.gkeLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{KeySecretRef: fleetv1alpha1.SecretKeyReference{Name: "google", Key: "key.json"}},
	})
}

func TestGKEImport(t *testing.T) { modern(t).live(t, modern(t).gkeLifeWithKey(t, "gke")) }

// TestGKEAutopilotImport: the provider's webhook refuses what GKE reports of logging and monitoring.
func TestGKEAutopilotImport(t *testing.T) {
	const name, location = "autopilot", "europe-west4"
	modern(t).Cloud.AddGKE(fakecloud.GKE{Location: location, Name: name, Autopilot: true})
	imp := importertest.NewImport(name, fleetv1alpha1.ClusterImportSpec{
		GKE:        &fleetv1alpha1.GKEImport{Location: location, ClusterName: name},
		Kubeconfig: &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone},
	})
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	controlPlane := modern(t).ListLabelled(t, imp, importertest.ReflectedKinds(reflection.GKE)[1])
	if autopilot, _, _ := unstructured.NestedBool(controlPlane[0].Object, "spec", "enableAutopilot"); !autopilot {
		t.Errorf("the control plane is not one of Autopilot: %v", controlPlane[0].Object["spec"])
	}
	modern(t).Unimport(t, imp)
}

// TestImportWithATokenOfTheUser: the user keeps a token in a Secret.
func TestImportWithATokenOfTheUser(t *testing.T) {
	const name = "token"
	api := modern(t).CreateAPI(t, name, importertest.Reader)
	token := func() map[string][]byte {
		value, err := api.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{"token": []byte(value)}
	}
	secret := credentialsSecret("of-the-user", token())
	modern(t).Create(t, secret)
	l := modern(t).gkeLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: secret.Name, Key: "token"},
	})
	l.publishedBy = reflection.GKECluster
	l.rotates = func() {
		secret.Data = token()
		if err := modern(t).Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	modern(t).live(t, l)
}
