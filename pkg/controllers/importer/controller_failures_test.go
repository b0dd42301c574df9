// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
)

// TestImportSurvivesLostReplies loses the reply to every write once, as when the manager is killed after each write, in
// import and in un-import. The write itself is carried out. Nothing is lost, and nothing is created twice.
func TestImportSurvivesLostReplies(t *testing.T) {
	modern(t).Cloud.FailOnMutation(t)
	modern(t).AddEKS(t, "cafe4567", "blue")
	writes.lose(true)
	defer writes.lose(false)
	imp := importertest.NewEKSImport("killed", "cafe4567", "blue")
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	all := modern(t).ListMade(t, imp)
	slices.Sort(all)
	for _, want := range []string{"Cluster/killed", "MachinePool/killed-blue-f7ad15de19d0", "AWSManagedControlPlane/killed", "Secret/killed-kubeconfig"} {
		if !slices.Contains(all, want) {
			importertest.Eventually(t, want, func() (bool, string) {
				return slices.Contains(modern(t).ListMade(t, imp), want), fmt.Sprint(modern(t).ListMade(t, imp))
			})
		}
	}
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("something is doubled: %v", all)
	}
	capi := &clusterv1.Cluster{}
	if err := modern(t).Client.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Spec.Paused == nil || !*capi.Spec.Paused || capi.Annotations[fleetv1alpha1.ImportPausedAnnotation] != string(imp.UID) {
		t.Errorf("the Cluster is not paused by its import: %v %v", capi.Spec.Paused, capi.Annotations)
	}
	modern(t).Unimport(t, imp)
}

// TestImportTakesNoOtherNamespacesProviderConfig: the attacker borrows the rights of a configuration that was not
// created for their namespace.
func TestImportTakesNoOtherNamespacesProviderConfig(t *testing.T) {
	for name, spec := range map[string]fleetv1alpha1.ClusterImportSpec{
		"stranger":     {EKS: &fleetv1alpha1.EKSImport{Region: importertest.Region, ClusterName: "cafe89ab"}},
		"stranger-aks": {AKS: &fleetv1alpha1.AKSImport{ResourceGroupName: resourceGroup, ClusterName: "stranger", Location: "westeurope"}},
		"stranger-gke": {GKE: &fleetv1alpha1.GKEImport{Location: "europe-west3", ClusterName: "stranger"}},
	} {
		spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
		imp := importertest.NewImport(name, spec)
		imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
		modern(t).Create(t, imp)
		modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
		if left := modern(t).ListMade(t, imp); len(left) > 0 {
			t.Errorf("something was created: %v", left)
		}
		modern(t).Unimport(t, imp)
	}
}

// TestImportOverwritesNoForeignCluster: the attacker names an import like another user's Cluster.
func TestImportOverwritesNoForeignCluster(t *testing.T) {
	modern(t).AddEKS(t, "cafecdef")
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "taken"}}
	foreign.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "foreign.example.org", Port: 443}
	modern(t).Create(t, foreign)
	imp := importertest.NewEKSImport("taken", "cafecdef")
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	modern(t).Unimport(t, imp)
	now := &clusterv1.Cluster{}
	if err := modern(
		t,
	).Client.Get(
		t.Context(),
		client.ObjectKeyFromObject(foreign),
		now,
	); err != nil ||
		now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("another user's Cluster was changed: %v %v", err, now.ObjectMeta)
	}
}

// TestImportTakesNoForeignConnectionSecret: the attacker creates a Secret where the provider would write one, with
// their own server.
func TestImportTakesNoForeignConnectionSecret(t *testing.T) {
	modern(t).AddEKS(t, "cafe9999")
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "planted-import-connection"},
		Data:       map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n")},
	}
	modern(t).Create(t, planted)
	imp := importertest.NewEKSImport("planted", "cafe9999")
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotFound)
	err := modern(t).Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: "planted-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a planted kubeconfig was taken: %v", err)
	}
	modern(t).Unimport(t, imp)
}

// TestImportTwice: the same cluster is imported once.
func TestImportTwice(t *testing.T) {
	modern(t).AddEKS(t, "cafe7777")
	first := importertest.NewEKSImport("first", "cafe7777")
	modern(t).Create(t, first)
	modern(t).WaitForReason(t, first, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	// Creation times have whole seconds. Of two imports of one second, the UID decides which counts as the older one.
	importertest.Eventually(t, "the second import is younger", func() (bool, string) {
		return time.Since(first.CreationTimestamp.Time) > time.Second, ""
	})
	second := importertest.NewEKSImport("second", "cafe7777")
	modern(t).Create(t, second)
	modern(t).WaitForReason(t, second, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice)
	if !meta.IsStatusConditionTrue(second.Status.Conditions, fleetv1alpha1.ConditionStalled) {
		t.Errorf("the second import does not say that it has stopped: %v", second.Status.Conditions)
	}
	modern(t).Unimport(t, second)
	modern(t).Unimport(t, first)
}

// TestMachinesOfAnImportedClusterAreRefused: the attacker creates a MachinePool or a Machine that names an imported
// cluster, with infrastructure of theirs that lists the cluster's Nodes: Cluster API core would annotate and delete
// them.
func TestMachinesOfAnImportedClusterAreRefused(t *testing.T) {
	modern(t).AddEKS(t, "cafe5555", "blue")
	imp := importertest.NewEKSImport("members", "cafe5555", "blue")
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	infrastructure := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedMachinePool", "name": "theirs"}
	template := map[string]any{"spec": map[string]any{
		"clusterName": imp.Name, "bootstrap": map[string]any{"dataSecretName": "theirs"}, "infrastructureRef": infrastructure,
	}}
	selector := map[string]any{"matchLabels": map[string]any{"a": "b"}}
	for kind, spec := range map[string]map[string]any{
		"MachinePool":       {"clusterName": imp.Name, "template": template},
		"MachineDeployment": {"clusterName": imp.Name, "template": template, "selector": selector},
		"MachineSet":        {"clusterName": imp.Name, "template": template, "selector": selector},
		"Machine":           template["spec"].(map[string]any),
	} {
		t.Run(kind, func(t *testing.T) {
			member := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
			member.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
			member.SetNamespace(imp.Namespace)
			member.SetName("theirs")
			importertest.Eventually(t, "the hub refuses it", func() (bool, string) {
				err := modern(t).Client.Create(t.Context(), member.DeepCopy(), client.DryRunAll)
				return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "members.imports.masthead.dev"), fmt.Sprint(err)
			})
			_ = unstructured.SetNestedField(member.Object, "another", "spec", "clusterName")
			if kind != "Machine" {
				_ = unstructured.SetNestedField(member.Object, "another", "spec", "template", "spec", "clusterName")
			}
			if err := modern(t).Client.Create(t.Context(), member, client.DryRunAll); err != nil {
				t.Errorf("want Machines of another cluster to be accepted, got %v", err)
			}
		})
	}
	modern(t).machinesAreAcceptedOnceItIsGone(t, imp, newMachine(imp.Name))
}

// machinesAreAcceptedOnceItIsGone un-imports a cluster while a foreign finalizer keeps the ClusterImport.
func (w *world) machinesAreAcceptedOnceItIsGone(t *testing.T, imp *fleetv1alpha1.ClusterImport, machine *unstructured.Unstructured) {
	t.Helper()
	finalizers := func(change func([]string) []string) {
		t.Helper()
		importertest.Eventually(t, "the finalizers change", func() (bool, string) {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
				return false, err.Error()
			}
			imp.Finalizers = change(imp.Finalizers)
			err := w.Client.Update(t.Context(), imp)
			return err == nil, fmt.Sprint(err)
		})
	}
	const theirs = "example.org/kept"
	finalizers(func(all []string) []string { return append(all, theirs) })
	if err := w.Client.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "the hub accepts Machines of that name", func() (bool, string) {
		err := w.Client.Create(t.Context(), machine.DeepCopy(), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	finalizers(func(all []string) []string { return slices.DeleteFunc(all, func(f string) bool { return f == theirs }) })
	importertest.Eventually(t, "the import is gone", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp.DeepCopy())
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// newMachine is a Machine of another user that names a cluster.
func newMachine(cluster string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterName": cluster, "bootstrap": map[string]any{"dataSecretName": "theirs"},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedMachinePool", "name": "theirs"},
	}}}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	m.SetNamespace(metav1.NamespaceDefault)
	m.SetName("theirs-" + cluster)
	return m
}

// TestImportWaitsForMachinesOfOthers: a Machine named the cluster before it was imported. When it is deleted, the
// import continues: a watch reports that to it.
func TestImportWaitsForMachinesOfOthers(t *testing.T) {
	modern(t).AddEKS(t, "cafe5556")
	machine := newMachine("early")
	modern(t).Create(t, machine)
	imp := importertest.NewEKSImport("early", "cafe5556")
	modern(t).Create(t, imp)
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	if left := modern(t).ListMade(t, imp); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	if err := modern(t).Client.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	modern(t).WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	modern(t).Unimport(t, imp)
}

// TestNothingIsLeftWhenTheManagerWasDown: a user removes the finalizer of the only ClusterImport and deletes it,
// while the manager does not run. The next manager removes what the import created.
func TestNothingIsLeftWhenTheManagerWasDown(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	w.AddEKS(t, "cafe4444", "blue")
	imp := importertest.NewEKSImport("down", "cafe4444", "blue")
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if err := w.stopImporter(); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "the ClusterImport is gone", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		if err == nil {
			imp.Finalizers = nil
			err = errors.Join(w.Client.Update(t.Context(), imp), w.Client.Delete(t.Context(), imp))
		}
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	before := w.ListMade(t, imp)
	if !containsAll(before, []string{"Cluster/down", "Secret/down-kubeconfig"}) {
		t.Fatalf("nothing is left to be removed: %v", before)
	}
	w.stopImporter = importertest.RunInBackground(context.Background(), w.runImporter)
	importertest.Eventually(t, "nothing is left", func() (bool, string) {
		left := w.ListMade(t, imp)
		return len(left) == 0, fmt.Sprint(left)
	})
}
