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
)

// TestImportSurvivesLostReplies loses the reply to every write once, as when the manager is killed after each write, in
// import and in un-import. The write itself is carried out. Nothing is lost, and nothing is created twice.
func TestImportSurvivesLostReplies(t *testing.T) {
	modern(t).cloud.FailOnMutation(t)
	modern(t).addEKS(t, "cafe4567", "blue")
	writes.lose(true)
	defer writes.lose(false)
	imp := importOfEKS("killed", "cafe4567", "blue")
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	all := modern(t).made(t, imp)
	slices.Sort(all)
	for _, want := range []string{"Cluster/killed", "MachinePool/killed-blue-f7ad15de19d0", "AWSManagedControlPlane/killed", "Secret/killed-kubeconfig"} {
		if !slices.Contains(all, want) {
			eventually(t, want, func() (bool, string) {
				return slices.Contains(modern(t).made(t, imp), want), fmt.Sprint(modern(t).made(t, imp))
			})
		}
	}
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("something is doubled: %v", all)
	}
	capi := &clusterv1.Cluster{}
	if err := modern(t).hub.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Spec.Paused == nil || !*capi.Spec.Paused || capi.Annotations[fleetv1alpha1.ImportPausedAnnotation] != string(imp.UID) {
		t.Errorf("the Cluster is not paused by its import: %v %v", capi.Spec.Paused, capi.Annotations)
	}
	modern(t).unimport(t, imp)
}

// TestImportTakesNoOtherNamespacesProviderConfig: the attacker borrows the rights of a configuration that was not
// created for their namespace.
func TestImportTakesNoOtherNamespacesProviderConfig(t *testing.T) {
	imp := importOfEKS("stranger", "cafe89ab")
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	if left := modern(t).made(t, imp); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	modern(t).unimport(t, imp)
}

// TestImportOverwritesNoForeignCluster: the attacker names an import like another user's Cluster.
func TestImportOverwritesNoForeignCluster(t *testing.T) {
	modern(t).addEKS(t, "cafecdef")
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "taken"}}
	foreign.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "foreign.example.org", Port: 443}
	modern(t).create(t, foreign)
	imp := importOfEKS("taken", "cafecdef")
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	modern(t).unimport(t, imp)
	now := &clusterv1.Cluster{}
	if err := modern(t).hub.Get(t.Context(), client.ObjectKeyFromObject(foreign), now); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("another user's Cluster was changed: %v %v", err, now.ObjectMeta)
	}
}

// TestImportTakesNoForeignConnectionSecret: the attacker creates a Secret where the provider would write one, with
// their own server.
func TestImportTakesNoForeignConnectionSecret(t *testing.T) {
	modern(t).addEKS(t, "cafe9999")
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "planted-import-connection"},
		Data:       map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n")},
	}
	modern(t).create(t, planted)
	imp := importOfEKS("planted", "cafe9999")
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotFound)
	err := modern(t).hub.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: "planted-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a planted kubeconfig was taken: %v", err)
	}
	modern(t).unimport(t, imp)
}

// TestImportTwice: the same cluster is imported once.
func TestImportTwice(t *testing.T) {
	modern(t).addEKS(t, "cafe7777")
	first := importOfEKS("first", "cafe7777")
	modern(t).create(t, first)
	modern(t).waitFor(t, first, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	// Creation times have whole seconds. Of two imports of one second, the UID decides which counts as the older one.
	eventually(t, "the second import is younger", func() (bool, string) {
		return time.Since(first.CreationTimestamp.Time) > time.Second, ""
	})
	second := importOfEKS("second", "cafe7777")
	modern(t).create(t, second)
	modern(t).waitFor(t, second, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice)
	if !meta.IsStatusConditionTrue(second.Status.Conditions, fleetv1alpha1.ConditionStalled) {
		t.Errorf("the second import does not say that it has stopped: %v", second.Status.Conditions)
	}
	modern(t).unimport(t, second)
	modern(t).unimport(t, first)
}

// TestMachinesOfAnImportedClusterAreRefused: the attacker creates a MachinePool or a Machine that names an imported
// cluster, with infrastructure of theirs that lists the cluster's Nodes: Cluster API core would annotate and delete
// them.
func TestMachinesOfAnImportedClusterAreRefused(t *testing.T) {
	modern(t).addEKS(t, "cafe5555", "blue")
	imp := importOfEKS("members", "cafe5555", "blue")
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
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
			eventually(t, "the hub refuses it", func() (bool, string) {
				err := modern(t).hub.Create(t.Context(), member.DeepCopy(), client.DryRunAll)
				return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "members.imports.masthead.dev"), fmt.Sprint(err)
			})
			_ = unstructured.SetNestedField(member.Object, "another", "spec", "clusterName")
			if kind != "Machine" {
				_ = unstructured.SetNestedField(member.Object, "another", "spec", "template", "spec", "clusterName")
			}
			if err := modern(t).hub.Create(t.Context(), member, client.DryRunAll); err != nil {
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
		eventually(t, "the finalizers change", func() (bool, string) {
			if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
				return false, err.Error()
			}
			imp.Finalizers = change(imp.Finalizers)
			err := w.hub.Update(t.Context(), imp)
			return err == nil, fmt.Sprint(err)
		})
	}
	const theirs = "example.org/kept"
	finalizers(func(all []string) []string { return append(all, theirs) })
	if err := w.hub.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hub accepts Machines of that name", func() (bool, string) {
		err := w.hub.Create(t.Context(), machine.DeepCopy(), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	finalizers(func(all []string) []string { return slices.DeleteFunc(all, func(f string) bool { return f == theirs }) })
	eventually(t, "the import is gone", func() (bool, string) {
		err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp.DeepCopy())
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
	modern(t).addEKS(t, "cafe5556")
	machine := newMachine("early")
	modern(t).create(t, machine)
	imp := importOfEKS("early", "cafe5556")
	modern(t).create(t, imp)
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	if left := modern(t).made(t, imp); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	if err := modern(t).hub.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	modern(t).waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	modern(t).unimport(t, imp)
}

// TestNothingIsLeftWhenTheManagerWasDown: a user removes the finalizer of the only ClusterImport and deletes it,
// while the manager does not run. The next manager removes what the import created.
func TestNothingIsLeftWhenTheManagerWasDown(t *testing.T) {
	w := modern(t)
	w.cloud.FailOnMutation(t)
	w.addEKS(t, "cafe4444", "blue")
	imp := importOfEKS("down", "cafe4444", "blue")
	w.create(t, imp)
	w.waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if err := w.stopImporter(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ClusterImport is gone", func() (bool, string) {
		err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		if err == nil {
			imp.Finalizers = nil
			err = errors.Join(w.hub.Update(t.Context(), imp), w.hub.Delete(t.Context(), imp))
		}
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	before := w.made(t, imp)
	if !containsAll(before, []string{"Cluster/down", "Secret/down-kubeconfig"}) {
		t.Fatalf("nothing is left to be removed: %v", before)
	}
	w.stopImporter = inBackground(context.Background(), w.runImporter)
	eventually(t, "nothing is left", func() (bool, string) {
		left := w.made(t, imp)
		return len(left) == 0, fmt.Sprint(left)
	})
}
