// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestTokenSecretIsNotAnybodysSecret: the attacker may write ClusterImports and not read Secrets, and tries to get one
// sent as a token to their own cluster.
func TestTokenSecretIsNotAnybodysSecret(t *testing.T) {
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "database", Key: "password"},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "database"}, Data: map[string][]byte{"password": []byte("of-the-database")},
	}
	h := newHub(t, imp, secret)
	h.settle()
	h.want(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotAllowed)
	err := h.c.Get(t.Context(), client.ObjectKey{Namespace: "customers", Name: "shop-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Secret was read: %v", err)
	}
}

// TestIDOfAClusterIsNotSquatted: the attacker has an older import in another namespace, whose provider configuration
// leads to their own cloud, which shows the ID of another owner's cluster.
func TestIDOfAClusterIsNotSquatted(t *testing.T) {
	const id = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"
	older := func(namespace string, config fleetv1alpha1.ProviderConfigReference) *fleetv1alpha1.ClusterImport {
		imp := anImport()
		imp.Namespace, imp.Name, imp.UID, imp.CreationTimestamp = namespace, "squatter", "squatter-uid", metav1.NewTime(time.Now().Add(-time.Hour))
		imp.Spec.ProviderConfigRef, imp.Status.Observed = config, &fleetv1alpha1.ObservedCluster{ID: id}
		return imp
	}
	own := fleetv1alpha1.ProviderConfigReference{Kind: "ProviderConfig", Name: "customer"}
	shared := fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	for name, tc := range map[string]struct {
		reason string
		config fleetv1alpha1.ProviderConfigReference
		other  *fleetv1alpha1.ClusterImport
		// allowed are the namespaces that may use the shared configuration.
		allowed string
		want    bool
	}{
		"OtherNamespace":       {"The configuration of the other namespace is another one, of the same name.", own, older("attacker", own), "", false},
		"OtherConfiguration":   {"Only one of the two uses the shared configuration.", own, older("attacker", shared), "", false},
		"SameNamespace":        {"Who writes in the namespace is one team.", own, older("customers", shared), "", true},
		"SharedConfiguration":  {"What the administrator's configuration shows is so.", shared, older("attacker", shared), "customers, attacker", true},
		"RevokedConfiguration": {"An import that may not use the configuration any more has nothing.", shared, revoked(older("attacker", shared)), "customers", false},
		"NotAllowed":           {"Nor has one that was never allowed to use it, regardless of its status.", shared, older("attacker", shared), "customers", false},
		"HeldByAnother":        {"An import that only a foreign finalizer keeps does not count.", shared, going(older("attacker", shared)), "customers, attacker", false},
	} {
		t.Run(name, func(t *testing.T) {
			imp := anImport()
			imp.Spec.ProviderConfigRef, imp.Status.Observed = tc.config, &fleetv1alpha1.ObservedCluster{ID: id}
			h := newHub(t, imp, tc.other)
			if tc.config == shared {
				h.allow(tc.allowed)
			}
			h.settle()
			want := fleetv1alpha1.ReasonImported
			if tc.want {
				want = fleetv1alpha1.ReasonImportedTwice
			}
			t.Log(tc.reason)
			h.want(fleetv1alpha1.ConditionReady, want)
		})
	}
}

func going(imp *fleetv1alpha1.ClusterImport) *fleetv1alpha1.ClusterImport {
	imp.DeletionTimestamp, imp.Finalizers = new(metav1.Now()), []string{"attacker.example.org/mine"}
	return imp
}

func revoked(imp *fleetv1alpha1.ClusterImport) *fleetv1alpha1.ClusterImport {
	imp.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionPreflight, Reason: fleetv1alpha1.ReasonProviderConfigNotAllowed}}
	return imp
}

// allow allows a namespace to use the cluster-scoped provider configuration.
func (h *hubOfOneImport) allow(namespace string) {
	h.t.Helper()
	platform := h.object(clusterProviderConfigKind, "", "platform")
	platform.SetAnnotations(map[string]string{fleetv1alpha1.ImportAllowedNamespacesAnnotation: namespace})
	if err := h.c.Update(h.t.Context(), platform); err != nil {
		h.t.Fatal(err)
	}
}

// TestRevokedConfigurationKeepsNothing: the attacker's namespace may no longer use a configuration, but would continue
// to observe the cluster, and to be connected to it, with what was created before.
func TestRevokedConfigurationKeepsNothing(t *testing.T) {
	imp := anImport()
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	h := newHub(t, imp)
	h.allow("customers")
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	before := h.made()
	h.allow("others")
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	if left := h.made(); len(left) > 0 {
		t.Errorf("want nothing left, got %v", left)
	}
	if got := h.get(); len(got.Finalizers) > 0 || len(got.Status.References) > 0 || got.Status.Observed == nil {
		t.Errorf("want no finalizer, no references, and the cluster that it was, got %v %+v", got.Finalizers, got.Status)
	}
	h.allow("customers")
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if again := h.made(); !slices.Equal(again, before) {
		t.Errorf("want all of it again, %v, got %v", before, again)
	}
}

// TestRevokedConfigurationObservesNothing: a finalizer that the attacker puts on the kubeconfig keeps that, and not
// what observes with the configuration.
func TestRevokedConfigurationObservesNothing(t *testing.T) {
	imp, token := importWithToken("true")
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	h := newHub(t, imp, token)
	h.allow("customers")
	h.connected()
	secret := &corev1.Secret{}
	if err := h.c.Get(t.Context(), client.ObjectKey{Namespace: "customers", Name: "shop-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Finalizers = append(secret.Finalizers, "example.org/kept")
	if err := h.c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	h.allow("others")
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	for _, gvk := range kindsOfEKS() {
		if left := h.list(gvk); strings.HasSuffix(gvk.Group, ".upbound.io") && len(left) > 0 {
			t.Errorf("%s still observes with the configuration", gvk)
		}
	}
}

// TestNothingIsOrphaned: the attacker removes the finalizer of an import and deletes it, so that nothing removes what
// still observes the cluster, or what was reflected of it.
func TestNothingIsOrphaned(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("CreatedAgain=%v", again), func(t *testing.T) {
			h := newHub(t, anImport())
			h.settle()
			imp := h.get()
			imp.Finalizers = nil
			if err := h.c.Update(t.Context(), imp); err != nil {
				t.Fatal(err)
			}
			if err := h.c.Delete(t.Context(), imp); err != nil {
				t.Fatal(err)
			}
			if again {
				next := anImport()
				next.UID = "next-uid"
				h.create(next)
			}
			h.settle()
			if left := h.madeBy("import-uid"); len(left) > 0 {
				t.Errorf("want nothing left of the import, got %v", left)
			}
			if again {
				h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
			}
		})
	}
}

// TestOrphanThatRefersToRealInfrastructureIsNotDeleted: the attacker makes an orphan refer to a real cluster.
func TestOrphanThatRefersToRealInfrastructureIsNotDeleted(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(importertest.ReflectedKinds(reflection.EKS)[1])
	theirs.SetNamespace("customers")
	theirs.SetName("real")
	h.create(theirs)
	cluster := h.object(clusterKind, "customers", "shop")
	h.change(cluster, "real", "spec", "infrastructureRef", "name")
	imp := h.get()
	imp.Finalizers = nil
	if err := h.c.Update(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	if err := h.c.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, _ = h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key})
	}
	if now := h.object(clusterKind, "customers", "shop"); !now.GetDeletionTimestamp().IsZero() {
		t.Error("Cluster API core would delete the infrastructure of a theirs cluster")
	}
}

// TestClusterWithForeignMachinesGetsNoCredentials: the attacker creates a MachinePool, or a Machine, that names a
// cluster before it is imported, with infrastructure of theirs that lists the cluster's Nodes: Cluster API core would
// annotate and delete them.
func TestClusterWithForeignMachinesGetsNoCredentials(t *testing.T) {
	for _, kind := range []string{"MachinePool", "MachineDeployment", "MachineSet", "Machine"} {
		t.Run(kind, func(t *testing.T) {
			imp := anImport()
			foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterName": imp.Name}}}
			foreign.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
			foreign.SetNamespace(imp.Namespace)
			foreign.SetName("foreign")
			written := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: imp.Namespace, Name: "shop-kubeconfig", UID: "secret-uid", Labels: ownership.Marks(imp),
			}}
			h := newHub(t, imp, foreign, written)
			h.settle()
			h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
			if left := h.made(); len(left) > 0 {
				t.Errorf("want neither credentials nor a reflection, got %v", left)
			}
		})
	}
}

// TestPoolsOfAnEarlierNameGiveWay: pools had names without a hash once. Their reflections are replaced.
func TestPoolsOfAnEarlierNameGiveWay(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	want := h.made()
	for _, gvk := range []schema.GroupVersionKind{importertest.ReflectedKinds(reflection.EKS)[3], machinePoolKind} {
		earlier := copied(h.object(gvk, "customers", reflection.PoolName("shop", "blue")), "customers", "shop-blue")
		if gvk == machinePoolKind {
			if err := unstructured.SetNestedField(earlier.Object, "shop-blue", "spec", "template", "spec", "infrastructureRef", "name"); err != nil {
				t.Fatal(err)
			}
		}
		h.create(earlier)
	}
	h.settle()
	if got := h.made(); !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// TestHangingClustersHoldFewWorkers: the attacker imports clusters that never answer, so that no other import is
// reconciled, or can send requests to its cluster.
func TestHangingClustersHoldFewWorkers(t *testing.T) {
	const workers = 8 // So there are four places, of which a namespace can have two.
	received, release := make(chan struct{}, 2*workers), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		received <- struct{}{}
		<-release
	}))
	t.Cleanup(server.Close)
	clock := clocktesting.NewFakeClock(time.Now())
	woken := make(chan types.NamespacedName, workers)
	r := &kubeconfigs{
		clusters: workload.NewClusters(clock, nil), creds: credentials.Options{AllowLoopback: true},
		places: newPlaces(workers, func(key types.NamespacedName) { woken <- key }),
	}
	content, err := encoded(&clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, &clientcmdapi.AuthInfo{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	look := func(namespace string, i int) result {
		imp := anImport()
		imp.Namespace, imp.Name, imp.UID = namespace, fmt.Sprint("import-", i), types.UID(fmt.Sprint(namespace, i))
		p, err := r.access(t.Context(), newScope(imp), kubeconfig{content: content})
		if err != nil {
			t.Error(err)
		}
		return p
	}
	waits := func(p result) {
		t.Helper()
		if !p.waits || len(p.conditions) > 0 {
			t.Errorf("want a further import to wait for its turn without a worker, got %v", p.conditions)
		}
	}
	var hanging sync.WaitGroup
	for i := range 2 {
		hanging.Go(func() { look("attacker", i) })
		<-received
	}
	waits(look("attacker", 2))
	for i := range 2 {
		hanging.Go(func() { look("customers", i) })
		<-received // Although the attacker's import has waited longer.
	}
	waits(look("others", 0))
	if len(woken) > 0 {
		t.Errorf("%s is woken before a place was given back", <-woken)
	}
	close(release)
	hanging.Wait()
	for _, of := range []string{"attacker", "others"} { // In any order.
		if key := <-woken; key.Namespace != "attacker" && key.Namespace != "others" {
			t.Errorf("want the import of %s be woken, got %s", of, key)
		}
	}
	r.places.Release(types.NamespacedName{Namespace: "others", Name: "import-0"})
	last := time.Duration(0)
	for i := range 5 {
		clock.Step(last)
		p := look("attacker", 0)
		if p.requeueAfter() <= last && last < workload.Resync {
			t.Errorf("time %d: want the cluster to be left alone for longer than %s, got %s", i, last, p.requeueAfter())
		}
		last = p.requeueAfter()
	}
	r.places.Release(types.NamespacedName{Namespace: "attacker", Name: "import-2"})
	if free, waiting, parties := r.places.Shared.Usage(); free != workers/2 || waiting > 0 || parties > 0 {
		t.Errorf("want every place given back, got %d free, %d waiting, %d parties", free, waiting, parties)
	}
}
