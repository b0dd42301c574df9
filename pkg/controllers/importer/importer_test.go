// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestEKSImport walks an import through its life, and holds every write against the list of what an importer may write.
func TestEKSImport(t *testing.T) {
	cloud.FailOnMutation(t)
	cluster := eks(t, "cafe0123", reader, "blue", "green")
	imp := importOf("shop", cluster.Name, "blue", "green")
	imp.Spec.Enroll = "gold"
	create(t, imp)
	waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)

	capi := &clusterv1.Cluster{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Labels[fleetv1alpha1.EnrollLabel] != "gold" || capi.Labels[fleetv1alpha1.ImportedLabel] != "true" {
		t.Errorf("the Cluster is not labelled: %v", capi.Labels)
	}
	eventually(t, "both pools are reflected", func() (bool, string) {
		all := made(t, string(imp.UID))
		return slices.Contains(all, "MachinePool/shop-blue-03bf9cf4b366") && slices.Contains(all, "MachinePool/shop-green-a8d618b92fcf"), fmt.Sprint(all)
	})
	waitFor(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
	everythingIsPausedAndOnlyObserves(t, imp)

	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: imp.Namespace, Name: "shop-kubeconfig"}
	if err := hub.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != "shop" {
		t.Errorf("the Secret is not one of Cluster API: %s %v", secret.Type, secret.Labels)
	}
	before, err := credentials.Parse(secret.Data["value"], credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}

	// A token rotates: the same Secret holds the next one.
	cloud.RotateTokens()
	touch(t, imp, reflection.EKSClusterAuth)
	eventually(t, "the kubeconfig follows the token", func() (bool, string) {
		now := &corev1.Secret{}
		if err := hub.Get(t.Context(), key, now); err != nil {
			return false, err.Error()
		}
		after, err := credentials.Parse(now.Data["value"], credentials.Options{AllowLoopback: true})
		return err == nil && now.UID == secret.UID && after.Token() != before.Token() && credentials.Compare(before, after) == credentials.TokenChanged, fmt.Sprint(err)
	})

	// A pool goes: its reflection goes, and nothing else.
	cloud.RemoveNodeGroup(region, cluster.Name, "green")
	touch(t, imp, reflection.EKSNodeGroup)
	eventually(t, "the reflection of the pool is gone", func() (bool, string) {
		all := made(t, string(imp.UID))
		return !slices.Contains(all, "MachinePool/shop-green-a8d618b92fcf") && !slices.Contains(all, "AWSManagedMachinePool/shop-green-a8d618b92fcf") &&
			slices.Contains(all, "MachinePool/shop-blue-03bf9cf4b366"), fmt.Sprint(all)
	})
	unimport(t, imp)
	onlyAllowedWrites(t)
}

// onlyAllowedWrites holds what the importer wrote so far against the golden file.
func onlyAllowedWrites(t *testing.T) {
	t.Helper()
	writes.mu.Lock()
	got := strings.Join(slices.Sorted(maps.Keys(writes.seen)), "\n") + "\n"
	writes.mu.Unlock()
	const golden = "testdata/writes.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
		if !strings.Contains("\n"+string(want), "\n"+line+"\n") {
			t.Errorf("the importer made a write that is not in %s: %s", golden, line)
		}
	}
}

// touch has the providers look at the managed resources of a kind at once.
func touch(t *testing.T, imp *fleetv1alpha1.ClusterImport, kind reflection.Kind) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.Namespaced().WithVersion("v1beta1"))
	if err := hub.List(t.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(imp.UID)}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%s"}}}`, list.Items[i].GetResourceVersion()))
		if err := hub.Patch(t.Context(), &list.Items[i], patch); err != nil {
			t.Fatal(err)
		}
	}
}

func everythingIsPausedAndOnlyObserves(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	for _, gvk := range reflection.ReflectedKinds(reflection.EKS) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := hub.List(t.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(imp.UID)}); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 {
			t.Errorf("no %s is reflected", gvk.Kind)
		}
		for _, o := range list.Items {
			_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
			if !paused && gvk.Kind != "Cluster" && gvk.Kind != "AWSClusterStaticIdentity" || len(o.GetFinalizers()) > 0 {
				t.Errorf("%s %q is not paused, or has a finalizer: %v", gvk.Kind, o.GetName(), o.Object["metadata"])
			}
		}
	}
	for _, kind := range reflection.Kinds(reflection.EKS) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.Namespaced().WithVersion("v1beta1"))
		if err := hub.List(t.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(imp.UID)}); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
			if kind != reflection.EKSClusterAuth && !slices.Equal(policies, []string{"Observe"}) {
				t.Errorf("%s %q does not only observe: %v", kind, o.GetName(), policies)
			}
		}
	}
}

// TestImportSurvivesLostReplies has every write be carried out and its reply be lost once, as when the manager is killed after each write,
// in import and in un-import. Nothing is lost, nothing is doubled.
func TestImportSurvivesLostReplies(t *testing.T) {
	cloud.FailOnMutation(t)
	cluster := eks(t, "cafe4567", reader, "blue")
	writes.lose(true)
	defer writes.lose(false)
	imp := importOf("killed", cluster.Name, "blue")
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	create(t, imp)
	waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	all := made(t, string(imp.UID))
	slices.Sort(all)
	for _, want := range []string{"Cluster/killed", "MachinePool/killed-blue-f7ad15de19d0", "AWSManagedControlPlane/killed", "Secret/killed-kubeconfig"} {
		if !slices.Contains(all, want) {
			eventually(t, want, func() (bool, string) {
				return slices.Contains(made(t, string(imp.UID)), want), fmt.Sprint(made(t, string(imp.UID)))
			})
		}
	}
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("something is doubled: %v", all)
	}
	capi := &clusterv1.Cluster{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Spec.Paused == nil || !*capi.Spec.Paused || capi.Annotations[fleetv1alpha1.ImportPausedAnnotation] != string(imp.UID) {
		t.Errorf("the Cluster is not paused by its import: %v %v", capi.Spec.Paused, capi.Annotations)
	}
	unimport(t, imp)
}

// TestImportTakesNoOtherNamespacesProviderConfig: the attacker lends the rights of a configuration that was not made for its namespace.
func TestImportTakesNoOtherNamespacesProviderConfig(t *testing.T) {
	imp := importOf("stranger", "cafe89ab")
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	create(t, imp)
	waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	if left := made(t, string(imp.UID)); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	unimport(t, imp)
}

// TestImportOverwritesNoForeignCluster: the attacker names an import like somebody else's Cluster.
func TestImportOverwritesNoForeignCluster(t *testing.T) {
	cluster := eks(t, "cafecdef", reader)
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "taken"}}
	foreign.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "foreign.example.org", Port: 443}
	create(t, foreign)
	imp := importOf("taken", cluster.Name)
	create(t, imp)
	waitFor(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	unimport(t, imp)
	now := &clusterv1.Cluster{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(foreign), now); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("somebody else's Cluster was touched: %v %v", err, now.ObjectMeta)
	}
}

// TestImportTakesNoForeignConnectionSecret: the attacker puts a Secret where the provider would write one, with a server of their own.
func TestImportTakesNoForeignConnectionSecret(t *testing.T) {
	cluster := eks(t, "cafe9999", reader)
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "planted-import-connection"},
		Data:       map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n")},
	}
	create(t, planted)
	imp := importOf("planted", cluster.Name)
	create(t, imp)
	waitFor(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotFound)
	err := hub.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: "planted-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a planted kubeconfig was taken: %v", err)
	}
	unimport(t, imp)
}

// TestImportTwice: the same cluster is imported once.
func TestImportTwice(t *testing.T) {
	cluster := eks(t, "cafe7777", reader)
	first := importOf("first", cluster.Name)
	create(t, first)
	waitFor(t, first, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	second := importOf("second", cluster.Name)
	create(t, second)
	waitFor(t, second, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice)
	if !meta.IsStatusConditionTrue(second.Status.Conditions, fleetv1alpha1.ConditionStalled) {
		t.Errorf("the second import does not say that it has stopped: %v", second.Status.Conditions)
	}
	unimport(t, second)
	unimport(t, first)
}
