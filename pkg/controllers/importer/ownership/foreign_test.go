// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// anImport is of the EKS cluster "prod".
func anImport() *fleetv1alpha1.ClusterImport {
	imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop", UID: "import-uid"}}
	imp.Spec.EKS = &fleetv1alpha1.EKSImport{ClusterName: "prod", Region: "eu-central-1"}
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ProviderConfig", Name: "customer"}
	return imp
}

// managedOfOthers is a managed resource for an EKS cluster of the name that the import names.
func managedOfOthers(gk schema.GroupKind, namespace, configKind, config string, change func(map[string]any)) *unstructured.Unstructured {
	ref := map[string]any{"name": config}
	if configKind != "" {
		ref["kind"] = configKind
	}
	spec := map[string]any{"forProvider": map[string]any{"region": "eu-central-1"}, "providerConfigRef": ref}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	m.SetGroupVersionKind(gk.WithVersion("v1beta1"))
	m.SetNamespace(namespace)
	m.SetName("theirs")
	m.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "prod"})
	if change != nil {
		change(m.Object)
	}
	return m
}

// idOfAnImport is what the provider shows for anImport.
const idOfAnImport = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"

func showsID(id string) func(map[string]any) {
	return func(o map[string]any) { o["status"] = map[string]any{"atProvider": map[string]any{"arn": id}} }
}

// TestManages: a name means nothing without the account. A tenant who creates a resource of that name in their own
// account must not prevent others from importing their cluster; a resource for the same cluster must prevent it.
func TestManages(t *testing.T) {
	namespaced, legacy := reflection.EKSCluster.Namespaced(), reflection.EKSCluster.Legacy()
	platform := fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	for name, tc := range map[string]struct {
		reason string
		config fleetv1alpha1.ProviderConfigReference
		other  *unstructured.Unstructured
		id     string
		legacy bool
		want   bool
	}{
		"SameConfig": {
			reason: "The configuration, the name and the place are the import's.",
			other:  managedOfOthers(namespaced, "customers", "ProviderConfig", "customer", nil), want: true,
		},
		"SameConfigOtherName": {
			reason: "The cluster is another one of the account.",
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "customer", func(o map[string]any) {
				o["metadata"].(map[string]any)["annotations"] = map[string]any{reflection.ExternalNameAnnotation: "production"}
			}),
		},
		"SameConfigNoPlace": {
			reason: "It says later where it is.",
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "customer", func(o map[string]any) {
				o["spec"].(map[string]any)["forProvider"] = map[string]any{}
			}), want: true,
		},
		"SameConfigOtherPlace": {
			reason: "The region is another one.",
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "customer", func(o map[string]any) {
				o["spec"].(map[string]any)["forProvider"] = map[string]any{"region": "eu-west-1"}
			}),
		},
		"SameConfigObserves": {
			reason: "What only observes changes nothing.",
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "customer", func(o map[string]any) {
				o["spec"].(map[string]any)["managementPolicies"] = []any{"Observe"}
			}),
		},
		"ConfigOfTheSameNameElsewhere": {
			reason: "A configuration of that name in the tenant's namespace is the tenant's.",
			other:  managedOfOthers(namespaced, "tenant", "ProviderConfig", "customer", nil),
		},
		"SharedConfig": {
			reason: "A cluster-scoped configuration is the same in every namespace.", config: platform,
			other: managedOfOthers(namespaced, "tenant", "ClusterProviderConfig", "platform", nil), want: true,
		},
		"SharedConfigByDefault": {
			reason: "Crossplane takes no kind for a cluster-scoped configuration.", config: platform,
			other: managedOfOthers(namespaced, "tenant", "", "platform", nil), want: true,
		},
		"OtherKindOfConfig": {
			reason: "A namespaced configuration of the name is another one.", config: platform,
			other: managedOfOthers(namespaced, "tenant", "ProviderConfig", "platform", nil),
		},
		"OtherGeneration": {
			reason: "Configurations of two groups are two.",
			other:  managedOfOthers(legacy, "", "", "customer", nil),
		},
		"Legacy": {
			reason: "In a hub with cluster-scoped resources alone the configuration is cluster-scoped.", legacy: true,
			other: managedOfOthers(legacy, "", "", "customer", nil), want: true,
		},
		"SameIDNearby": {
			reason: "Another configuration of the namespace leads to the same cluster.", id: idOfAnImport,
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "another", showsID(idOfAnImport)), want: true,
		},
		"SameIDOfAnAdministrator": {
			reason: "Only administrators make cluster-scoped configurations.", id: idOfAnImport,
			other: managedOfOthers(legacy, "", "", "another", showsID(idOfAnImport)), want: true,
		},
		"SameIDElsewhere": {
			reason: "With a cloud of one's own anybody's ID can be shown.", id: idOfAnImport,
			other: managedOfOthers(namespaced, "tenant", "ProviderConfig", "another", showsID(idOfAnImport)),
		},
		"OtherID": {
			reason: "The account is another one.", id: idOfAnImport,
			other: managedOfOthers(namespaced, "customers", "ProviderConfig", "another",
				showsID("arn:aws:eks:eu-central-1:999999999999:cluster/prod")),
		},
		"NoIDs": {
			reason: "Two that show nothing are not the same.",
			other:  managedOfOthers(namespaced, "customers", "ProviderConfig", "another", nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			imp := anImport()
			if tc.config.Name != "" {
				imp.Spec.ProviderConfigRef = tc.config
			}
			if got := ownership.Manages(tc.other, ownership.WantedImport(imp), !tc.legacy, tc.id); got != tc.want {
				t.Errorf("%s\nManages(): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// TestNamesOfAzureHaveNoCase: "Shop" and "shop" are one cluster of AKS, and two of EKS.
func TestNamesOfAzureHaveNoCase(t *testing.T) {
	newImport := func(aks bool, name, uid string) *fleetv1alpha1.ClusterImport {
		imp := anImport()
		imp.UID = types.UID(uid)
		imp.Spec.EKS.ClusterName = name
		if aks {
			imp.Spec.EKS, imp.Spec.AKS = nil, &fleetv1alpha1.AKSImport{
				ResourceGroupName: "group-of-" + name, ClusterName: name, Location: "westeurope",
			}
		}
		return imp
	}
	for _, aks := range []bool{true, false} {
		kind := reflection.EKSCluster
		if aks {
			kind = reflection.AKSCluster
		}
		other := managedOfOthers(kind.Namespaced(), "customers", "ProviderConfig", "customer", nil)
		other.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "shop"})
		if got := ownership.WantedImport(newImport(aks, "Shop", "1")).Names(other); got != aks {
			t.Errorf("AKS %v: a managed resource for the cluster is found: %v", aks, got)
		}
		older := []fleetv1alpha1.ClusterImport{*newImport(aks, "Shop", "1")}
		if _, got := ownership.ImportedBefore(newImport(aks, "shop", "2"), older, true, nil); got != aks {
			t.Errorf("AKS %v: two imports are of one cluster: %v", aks, got)
		}
	}
}
