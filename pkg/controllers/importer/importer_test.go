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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// TestImportSurvivesLostReplies has every write be carried out and its reply be lost once, as when the manager is
// killed after each write, in import and in un-import. Nothing is lost, nothing is doubled.
func TestImportSurvivesLostReplies(t *testing.T) {
	modern.cloud.FailOnMutation(t)
	modern.addEKS(t, "cafe4567", "blue")
	writes.lose(true)
	defer writes.lose(false)
	imp := importOfEKS("killed", "cafe4567", "blue")
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	modern.create(t, imp)
	modern.waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	all := modern.made(t, imp)
	slices.Sort(all)
	for _, want := range []string{"Cluster/killed", "MachinePool/killed-blue-f7ad15de19d0", "AWSManagedControlPlane/killed", "Secret/killed-kubeconfig"} {
		if !slices.Contains(all, want) {
			eventually(t, want, func() (bool, string) {
				return slices.Contains(modern.made(t, imp), want), fmt.Sprint(modern.made(t, imp))
			})
		}
	}
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("something is doubled: %v", all)
	}
	capi := &clusterv1.Cluster{}
	if err := modern.hub.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil {
		t.Fatal(err)
	}
	if capi.Spec.Paused == nil || !*capi.Spec.Paused || capi.Annotations[fleetv1alpha1.ImportPausedAnnotation] != string(imp.UID) {
		t.Errorf("the Cluster is not paused by its import: %v %v", capi.Spec.Paused, capi.Annotations)
	}
	modern.unimport(t, imp)
}

// TestImportTakesNoOtherNamespacesProviderConfig: the attacker lends the rights of a configuration that was not made
// for its namespace.
func TestImportTakesNoOtherNamespacesProviderConfig(t *testing.T) {
	imp := importOfEKS("stranger", "cafe89ab")
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	modern.create(t, imp)
	modern.waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	if left := modern.made(t, imp); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	modern.unimport(t, imp)
}

// TestImportOverwritesNoForeignCluster: the attacker names an import like somebody else's Cluster.
func TestImportOverwritesNoForeignCluster(t *testing.T) {
	modern.addEKS(t, "cafecdef")
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "taken"}}
	foreign.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "foreign.example.org", Port: 443}
	modern.create(t, foreign)
	imp := importOfEKS("taken", "cafecdef")
	modern.create(t, imp)
	modern.waitFor(t, imp, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	modern.unimport(t, imp)
	now := &clusterv1.Cluster{}
	if err := modern.hub.Get(t.Context(), client.ObjectKeyFromObject(foreign), now); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("somebody else's Cluster was touched: %v %v", err, now.ObjectMeta)
	}
}

// TestImportTakesNoForeignConnectionSecret: the attacker puts a Secret where the provider would write one, with a
// server of their own.
func TestImportTakesNoForeignConnectionSecret(t *testing.T) {
	modern.addEKS(t, "cafe9999")
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "planted-import-connection"},
		Data:       map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n")},
	}
	modern.create(t, planted)
	imp := importOfEKS("planted", "cafe9999")
	modern.create(t, imp)
	modern.waitFor(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotFound)
	err := modern.hub.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: "planted-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a planted kubeconfig was taken: %v", err)
	}
	modern.unimport(t, imp)
}

// TestImportTwice: the same cluster is imported once.
func TestImportTwice(t *testing.T) {
	modern.addEKS(t, "cafe7777")
	first := importOfEKS("first", "cafe7777")
	modern.create(t, first)
	modern.waitFor(t, first, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	second := importOfEKS("second", "cafe7777")
	modern.create(t, second)
	modern.waitFor(t, second, fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice)
	if !meta.IsStatusConditionTrue(second.Status.Conditions, fleetv1alpha1.ConditionStalled) {
		t.Errorf("the second import does not say that it has stopped: %v", second.Status.Conditions)
	}
	modern.unimport(t, second)
	modern.unimport(t, first)
}

// TestMachinesOfAnImportedClusterAreRefused: the attacker creates a MachinePool or a Machine that names an imported
// cluster, with infrastructure of theirs that lists the cluster's Nodes: Cluster API core would annotate and delete
// them.
func TestMachinesOfAnImportedClusterAreRefused(t *testing.T) {
	modern.addEKS(t, "cafe5555", "blue")
	imp := importOfEKS("members", "cafe5555", "blue")
	modern.create(t, imp)
	modern.waitFor(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
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
				err := modern.hub.Create(t.Context(), member.DeepCopy(), client.DryRunAll)
				return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "members.imports.masthead.dev"), fmt.Sprint(err)
			})
			_ = unstructured.SetNestedField(member.Object, "another", "spec", "clusterName")
			if kind != "Machine" {
				_ = unstructured.SetNestedField(member.Object, "another", "spec", "template", "spec", "clusterName")
			}
			if err := modern.hub.Create(t.Context(), member, client.DryRunAll); err != nil {
				t.Errorf("for another cluster it is nobody's concern: %v", err)
			}
		})
	}
	modern.unimport(t, imp)
}
