// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// spec is that of the only object of a kind, or of the one of a pool, that an import made. Nil if there is none.
func (w *world) spec(tb testing.TB, imp *fleetv1alpha1.ClusterImport, gvk schema.GroupVersionKind, pool string) (map[string]any, *unstructured.Unstructured) {
	tb.Helper()
	for _, o := range w.ListLabelled(tb, imp, gvk) {
		if pool == "" || o.GetName() == reflection.PoolName(imp.Name, pool) {
			spec, _ := o.Object["spec"].(map[string]any)
			return spec, &o
		}
	}
	return nil, nil
}

// lossy are the lossy fields of an import whose reason has the words.
func lossy(imp *fleetv1alpha1.ClusterImport, words string) []string {
	var fields []string
	for _, l := range imp.Status.Lossy {
		if strings.Contains(l.Reason, words) {
			fields = append(fields, l.Kind+" "+l.Field)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(fields)))
}

// TestImportBesideStrictWebhooks: a hub refuses a field of a control plane, a whole pool, and changes of another pool's
// instance type. The rest is imported, that pool is recreated, and everything is there once the hub takes it.
func TestImportBesideStrictWebhooks(t *testing.T) {
	const cluster = "cafe0b5e"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	policy := importertest.NewWebhookPolicy("strict", []string{"awsmanagedcontrolplanes", "awsmanagedmachinepools"}, []admissionv1.Validation{
		{Message: "spec.logging: Forbidden: no logs", Expression: "variables.others || request.operation == 'DELETE' || !has(variables.is.spec.logging)"},
		{Message: "no green pools", Expression: "variables.others || request.operation == 'DELETE' || variables.is.spec.?eksNodegroupName.orValue('') != 'green'"},
		{
			Message:    "spec.instanceType: field is immutable",
			Expression: "variables.others || request.operation != 'UPDATE' || object.spec.?instanceType == oldObject.spec.?instanceType",
		},
	})
	policy.Spec.Variables = append(policy.Spec.Variables, admissionv1.Variable{
		Name: "others", Expression: "variables.is.metadata.?labels[?'fleet.masthead.dev/import-name'].orValue('') != 'strict'",
	})
	binding := importertest.NewBinding(policy)
	w.Create(t, policy)
	w.Create(t, binding)
	t.Cleanup(func() { _ = w.Client.Delete(context.WithoutCancel(t.Context()), binding) })
	probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"eksNodegroupName": "green"}}}
	probe.SetGroupVersionKind(importertest.ReflectedKinds(reflection.EKS)[3])
	probe.SetNamespace(metav1.NamespaceDefault)
	probe.SetName("strict")
	probe.SetLabels(map[string]string{fleetv1alpha1.ImportNameLabel: "strict"})
	importertest.Eventually(t, "the policy is in force", func() (bool, string) {
		err := w.Client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "no green pools"), fmt.Sprint(err)
	})
	w.AddEKS(t, cluster, "blue", "green")
	imp := importertest.NewEKSImport("strict", cluster, "blue", "green")
	w.Create(t, imp)
	importertest.Eventually(t, "what the hub refuses is lossy", func() (bool, string) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		want := []string{"AWSManagedControlPlane spec.logging", "AWSManagedMachinePool metadata.name"}
		got := append(lossy(imp, "no logs"), lossy(imp, "no green pools")...)
		return slices.Equal(got, want), fmt.Sprint(imp.Status)
	})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	w.CheckPausedAndObserving(t, imp)
	kinds := importertest.ReflectedKinds(reflection.EKS)
	controlPlane, infraPool := kinds[2], kinds[3]
	if spec, _ := w.spec(t, imp, controlPlane, ""); spec["logging"] != nil || spec["network"] == nil {
		t.Errorf("want all but the field that is refused, got %v", spec)
	}
	if spec, _ := w.spec(t, imp, infraPool, "green"); spec != nil {
		t.Errorf("a pool that is refused is there: %v", spec)
	}

	_, before := w.spec(t, imp, infraPool, "blue")
	w.Cloud.AddNodeGroup(
		importertest.Region,
		cluster,
		fakecloud.NodeGroup{Name: "blue", AtProvider: map[string]any{"instanceTypes": []any{"m7i.large"}}},
	)
	w.TouchManaged(t, imp, reflection.EKSNodeGroup)
	importertest.Eventually(t, "the pool is recreated", func() (bool, string) {
		spec, now := w.spec(t, imp, infraPool, "blue")
		return now != nil && now.GetUID() != before.GetUID() && spec["instanceType"] == "m7i.large", fmt.Sprint(spec)
	})

	if err := w.Client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "all is there", func() (bool, string) {
		spec, _ := w.spec(t, imp, controlPlane, "")
		green, _ := w.spec(t, imp, infraPool, "green")
		pool, _ := w.spec(t, imp, clusterv1.GroupVersion.WithKind("MachinePool"), "green")
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		still := append(lossy(imp, "no logs"), lossy(imp, "no green pools")...)
		return spec["logging"] != nil && green != nil && pool != nil && len(still) == 0, fmt.Sprint(spec, still)
	})
	w.Unimport(t, imp)
}

// TestAKSImportWithImmutableFields: the customer gives up Entra ID, which Cluster API Provider Azure does not permit.
func TestAKSImportWithImmutableFields(t *testing.T) {
	w := modern(t)
	l := w.aksLife(t, "immutable", &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}, func(cluster *fakecloud.AKS) {
		cluster.AtProvider = map[string]any{
			"localAccountDisabled":                       true,
			"azureActiveDirectoryRoleBasedAccessControl": map[string]any{"adminGroupObjectIds": []any{"33333333-2222-3333-4444-555555555555"}},
		}
	})
	imp := l.imp
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	controlPlane := importertest.ReflectedKinds(reflection.AKS)[2]
	before, was := w.spec(t, imp, controlPlane, "")
	if before["aadProfile"] == nil || before["disableLocalAccounts"] != true {
		t.Fatalf("want a control plane with Entra ID, got %v", before)
	}
	w.Cloud.ChangeAKS(fakecloud.AKSClusterID(resourceGroup, "immutable"), map[string]any{
		"currentKubernetesVersion": "1.33.1", "localAccountDisabled": false,
		"azureActiveDirectoryRoleBasedAccessControl": map[string]any{"adminGroupObjectIds": []any{}},
	})
	w.TouchManaged(t, imp, reflection.AKSCluster)
	importertest.Eventually(t, "the version changes, and what cannot be changed is lossy", func() (bool, string) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		now, is := w.spec(t, imp, controlPlane, "")
		kept := now["aadProfile"] != nil && now["disableLocalAccounts"] == true && now["version"] == "v1.33.1" && is.GetUID() == was.GetUID()
		want := []string{"AzureManagedControlPlane spec.aadProfile", "AzureManagedControlPlane spec.disableLocalAccounts"}
		return kept && slices.Equal(lossy(imp, "field cannot be nil"), want), fmt.Sprint(now, imp.Status.Lossy)
	})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	w.Unimport(t, imp)
}

// TestImportBesideADefaultingWebhook: Cluster API Provider AWS sets bootstrapSelfManagedAddons on each write.
func TestImportBesideADefaultingWebhook(t *testing.T) {
	const cluster = "cafe0d5e"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	meta := metav1.ObjectMeta{Name: "defaults"}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name},
	}
	w.Create(t, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"awsmanagedcontrolplanes"}},
		}}}},
		MatchConditions:    []admissionv1.MatchCondition{{Name: "import", Expression: "object.metadata.name == 'defaults'"}},
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		Mutations: []admissionv1.Mutation{{
			PatchType:          admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{bootstrapSelfManagedAddons: true}}"},
		}},
	}})
	w.Create(t, binding)
	t.Cleanup(func() { _ = w.Client.Delete(context.WithoutCancel(t.Context()), binding) })
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(importertest.ReflectedKinds(reflection.EKS)[2])
	probe.SetNamespace(metav1.NamespaceDefault)
	probe.SetName("defaults")
	importertest.Eventually(t, "the webhook is in force", func() (bool, string) {
		tried := probe.DeepCopy()
		err := w.Client.Create(t.Context(), tried, client.DryRunAll)
		set, _, _ := unstructured.NestedBool(tried.Object, "spec", "bootstrapSelfManagedAddons")
		return set, fmt.Sprint(err)
	})
	w.AddEKS(t, cluster)
	w.Cloud.ChangeEKS(importertest.Region, cluster, map[string]any{"bootstrapSelfManagedAddons": false})
	imp := importertest.NewEKSImport("defaults", cluster)
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if got := lossy(imp, "changes the field"); !slices.Equal(got, []string{"AWSManagedControlPlane spec.bootstrapSelfManagedAddons"}) {
		t.Errorf("want the field lossy that the webhook sets, got %v", imp.Status.Lossy)
	}
	if versions, err := importertest.WebhookVersions(t.Context()); err != nil || len(versions) > 0 {
		w.Unimport(t, imp) // The provider's own webhook sets it as long as the hub is there.
		return
	}
	_, before := w.spec(t, imp, importertest.ReflectedKinds(reflection.EKS)[2], "")
	if err := w.Client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "the field is as observed", func() (bool, string) {
		spec, now := w.spec(t, imp, importertest.ReflectedKinds(reflection.EKS)[2], "")
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return spec["bootstrapSelfManagedAddons"] == false && now.GetUID() == before.GetUID() && len(lossy(imp, "changes the field")) == 0, fmt.Sprint(err, spec)
	})
	w.Unimport(t, imp)
}

// TestUnimportBesideAWebhookThatRefuses: the hub refuses to delete a pool of Cluster API's provider. The reflection
// that is removed after it stays, with the identity that its provider must refuse; the rest goes, and the import says
// so.
func TestUnimportBesideAWebhookThatRefuses(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	w.AddEKS(t, "kept", "blue", "green")
	for name, tc := range map[string]struct {
		cloud reflection.Cloud
		imp   *fleetv1alpha1.ClusterImport
		pool  string
	}{
		"EKS": {reflection.EKS, importertest.NewEKSImport("kept-eks", "kept", "blue", "green"), "blue"},
		"AKS": {reflection.AKS, w.aksLife(t, "kept-aks", &fleetv1alpha1.ImportKubeconfig{User: fleetv1alpha1.KubeconfigUserAdmin}, nil).imp, "apps"},
	} {
		t.Run(name, func(t *testing.T) {
			imp, kinds := tc.imp, importertest.ReflectedKinds(tc.cloud)
			pools := kinds[len(kinds)-3]
			w.Create(t, imp)
			w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
			w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
			_, pool := w.spec(t, imp, pools, tc.pool)
			mapping, err := w.Client.RESTMapper().RESTMapping(pools.GroupKind(), pools.Version)
			if err != nil {
				t.Fatal(err)
			}
			policy := importertest.NewWebhookPolicy("keeps-"+imp.Name, []string{mapping.Resource.Resource}, []admissionv1.Validation{{
				Message: "this pool stays",
				Expression: fmt.Sprintf("request.operation == 'DELETE' ? oldObject.metadata.name != %q : object.metadata.name != 'kept-probe'",
					pool.GetName()),
			}})
			binding := importertest.NewBinding(policy)
			w.Create(t, policy)
			w.Create(t, binding)
			t.Cleanup(func() { _ = w.Client.Delete(context.WithoutCancel(t.Context()), binding) })
			probe := pool.DeepCopy()
			probe.Object["metadata"] = map[string]any{"namespace": imp.Namespace, "name": "kept-probe"}
			importertest.Eventually(t, "the policy is in force", func() (bool, string) {
				err := w.Client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), "this pool stays"), fmt.Sprint(err)
			})
			if err := w.Client.Delete(t.Context(), imp); err != nil {
				t.Fatal(err)
			}
			importertest.Eventually(t, "the kubeconfig, the other pools and the managed resources are gone", func() (bool, string) {
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
					return false, err.Error()
				}
				left := w.ListMade(t, imp)
				unexpected := slices.ContainsFunc(left, func(o string) bool {
					kind, name, _ := strings.Cut(o, "/")
					waits := slices.ContainsFunc(kinds, func(gvk schema.GroupVersionKind) bool { return gvk.Kind == kind })
					return !waits || kind == pools.Kind && name != pool.GetName()
				})
				ready := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionReady)
				says := ready != nil && ready.Reason == fleetv1alpha1.ReasonReflectionRefused && strings.Contains(ready.Message, "this pool stays")
				stale := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionKubeconfigReady) != nil
				return says && !unexpected && !stale && len(left) >= len(kinds)-1, fmt.Sprint(left, imp.Status.Conditions)
			})
			if err := w.Client.Delete(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
			w.Unimport(t, imp)
		})
	}
}
