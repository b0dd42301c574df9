// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	importEKS = map[string]any{"region": "eu-central-1", "clusterName": "prod"}
	importAKS = map[string]any{"resourceGroupName": "rg", "clusterName": "prod", "location": "westeurope"}
	importGKE = map[string]any{"location": "europe-west1", "clusterName": "prod"}
)

func importSpec(fields ...any) map[string]any {
	spec := map[string]any{"providerConfigRef": map[string]any{"name": "customer"}}
	for i := 0; i < len(fields); i += 2 {
		spec[fields[i].(string)] = fields[i+1]
	}
	return spec
}

func clusterImport(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "fleet.masthead.dev/v1alpha1", "kind": "ClusterImport",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": spec,
	}}
}

func TestClusterImportValidation(t *testing.T) {
	exactlyOne := "exactly one of eks, aks and gke is required"
	none := map[string]any{"source": "None"}
	cases := map[string]struct {
		reason string
		name   string
		spec   map[string]any
		want   string
	}{
		"EKS": {reason: "A region and a name are enough.", spec: importSpec("eks", importEKS)},
		"AKS": {reason: "A resource group, a name and a region are enough.", spec: importSpec("aks", importAKS)},
		"GKE": {reason: "A location, a name and a word about credentials are enough.", spec: importSpec("gke", importGKE, "kubeconfig", none)},
		"SovereignAWS": {
			reason: "Its partition has longer names.", spec: importSpec("eks", map[string]any{"region": "eusc-de-east-1", "clusterName": "prod"}),
		},
		"SovereignGoogle": {
			reason: "Its regions have a prefix.",
			spec:   importSpec("gke", map[string]any{"location": "u-germany-northeast1-a", "clusterName": "prod"}, "kubeconfig", none),
		},
		"ZoneForAI": {
			reason: "Its name is longer.", spec: importSpec("gke", map[string]any{"location": "us-central1-ai1a", "clusterName": "prod"}, "kubeconfig", none),
		},
		"NoRegion": {
			reason: "It could lead elsewhere.", spec: importSpec("eks", map[string]any{"region": "eu/central-1", "clusterName": "prod"}),
			want: "spec.eks.region",
		},
		"None": {reason: "An import of nothing says nothing.", spec: importSpec(), want: exactlyOne},
		"Two":  {reason: "An import is of one cluster.", spec: importSpec("eks", importEKS, "aks", importAKS), want: exactlyOne},
		"GKEWithoutCredentials": {
			reason: "Its provider publishes no usable credentials, which must not look like an import that takes long.",
			spec:   importSpec("gke", importGKE), want: "the provider for GKE publishes no credentials",
		},
		"AdminOfEKS": {
			reason: "EKS has no administrator's kubeconfig.",
			spec:   importSpec("eks", importEKS, "kubeconfig", map[string]any{"user": "Admin"}), want: "kubeconfig.user Admin is for AKS",
		},
		"TokenWithoutSecret": {
			reason: "A token has to be somewhere.",
			spec:   importSpec("eks", importEKS, "kubeconfig", map[string]any{"source": "Token"}), want: "source and tokenSecretRef disagree",
		},
		"SecretOfAnotherNamespace": {
			reason: "A Secret is always one of the import's own namespace.",
			spec: importSpec("eks", importEKS, "kubeconfig", map[string]any{
				"source": "Token", "tokenSecretRef": map[string]any{"namespace": "kube-system", "name": "a", "key": "b"},
			}), want: `unknown field "spec.kubeconfig.tokenSecretRef.namespace"`,
		},
		"ServiceAccount": {
			reason: "What the provider publishes is used to ask for a token.",
			spec:   importSpec("eks", importEKS, "kubeconfig", map[string]any{"serviceAccountRef": map[string]any{"namespace": "masthead", "name": "read.only"}}),
		},
		"ServiceAccountWithoutCredentials": {
			reason: "Nothing can ask for its token.",
			spec: importSpec("eks", importEKS, "kubeconfig", map[string]any{
				"source": "None", "serviceAccountRef": map[string]any{"namespace": "masthead", "name": "reader"},
			}), want: "no serviceAccountRef with None",
		},
		"ServiceAccountWithoutNamespace": {
			reason: "A ServiceAccount is in a namespace of the imported cluster, and none is meant by default.",
			spec:   importSpec("eks", importEKS, "kubeconfig", map[string]any{"serviceAccountRef": map[string]any{"name": "reader"}}),
			want:   "spec.kubeconfig.serviceAccountRef.namespace: Required value",
		},
		"ServiceAccountWithAPath": {
			reason: "The name is a part of the path of a request.",
			spec: importSpec("eks", importEKS, "kubeconfig", map[string]any{
				"serviceAccountRef": map[string]any{"namespace": "masthead", "name": "reader/../admin"},
			}), want: "spec.kubeconfig.serviceAccountRef.name",
		},
		"ServiceAccountInANamespaceWithDots": {
			reason: "So is the namespace.",
			spec: importSpec("eks", importEKS, "kubeconfig", map[string]any{
				"serviceAccountRef": map[string]any{"namespace": "..", "name": "reader"},
			}), want: "spec.kubeconfig.serviceAccountRef.namespace",
		},
		"PlainHTTP": {
			reason: "A secret is not sent in the clear.",
			spec: importSpec("aks", importAKS, "kubeconfig", map[string]any{"source": "AzureServicePrincipal", "azure": map[string]any{
				"tenantID": "11111111-2222-3333-4444-555555555555", "clientID": "11111111-2222-3333-4444-555555555555",
				"clientSecretRef": map[string]any{"name": "a", "key": "b"}, "authorityHost": "http://login.example.org",
			}}), want: "it begins with https://",
		},
		"ListWithoutNames": {
			reason: "A list has names.",
			spec:   importSpec("eks", importEKS, "nodePools", map[string]any{"mode": "List"}), want: "names is required with the mode List",
		},
		"SubnetWithoutType": {
			reason: "An override says something.",
			spec:   importSpec("eks", importEKS, "subnets", map[string]any{"overrides": []any{map[string]any{"id": "subnet-0a"}}}),
			want:   "at least one of type and routeTableID is required",
		},
		"LongName": {
			reason: "The name is a part of other objects' names and of labels.",
			name:   strings.Repeat("a", 53), spec: importSpec("eks", importEKS), want: "at most 52 lower case letters",
		},
		"NameWithDots": {reason: "The name is that of a Cluster.", name: "a.b", spec: importSpec("eks", importEKS), want: "at most 52 lower case letters"},
		"EnrollNothing": {
			reason: "A label's value is a class or \"true\".",
			spec:   importSpec("eks", importEKS, "enroll", "Not A Class"), want: "enroll is \"true\" or the name of an EnrollmentClass",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := clusterImport("import", tc.spec)
			if tc.name != "" {
				object.SetName(tc.name)
			}
			err := hub.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
			if err == nil {
				defer func() { _ = hub.Delete(t.Context(), object) }()
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nCreate(...): got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestAClusterImportNeverBecomesThatOfAnotherCluster(t *testing.T) {
	none := map[string]any{"source": "None"}
	cases := map[string]struct {
		reason string
		from   map[string]any
		change func(spec map[string]any)
		want   string
	}{
		"Region": {
			reason: "Another region has another cluster of the same name.", from: importSpec("eks", maps.Clone(importEKS)),
			change: func(spec map[string]any) { spec["eks"].(map[string]any)["region"] = "us-east-1" }, want: "would name another cluster",
		},
		"ResourceGroup": {
			reason: "As does another resource group.", from: importSpec("aks", maps.Clone(importAKS)),
			change: func(spec map[string]any) { spec["aks"].(map[string]any)["resourceGroupName"] = "other" }, want: "would name another cluster",
		},
		"Location": {
			reason: "As does another location.", from: importSpec("gke", maps.Clone(importGKE), "kubeconfig", none),
			change: func(spec map[string]any) { spec["gke"].(map[string]any)["location"] = "us-central1" }, want: "would name another cluster",
		},
		"Name": {
			reason: "Another name is another cluster.", from: importSpec("gke", maps.Clone(importGKE), "kubeconfig", none),
			change: func(spec map[string]any) { spec["gke"].(map[string]any)["clusterName"] = "other" }, want: "would name another cluster",
		},
		"Endpoint": {
			reason: "A cluster is the same by its address and by its DNS name.",
			from:   importSpec("gke", maps.Clone(importGKE), "kubeconfig", none),
			change: func(spec map[string]any) { spec["gke"].(map[string]any)["endpoint"] = "DNS" },
		},
		"PublicName": {
			reason: "A private cluster is the same by its public name.",
			from:   importSpec("aks", maps.Clone(importAKS)),
			change: func(spec map[string]any) { spec["aks"].(map[string]any)["endpoint"] = "Public" },
		},
		"PlainText": {
			reason: "Credentials are sent over TLS only.", from: importSpec("eks", maps.Clone(importEKS)),
			change: func(spec map[string]any) {
				spec["kubeconfig"] = map[string]any{"server": map[string]any{"url": "http://forwarder.example.org"}}
			},
			want: "it begins with https://",
		},
		"Cloud": {
			reason: "As does another cloud.", from: importSpec("eks", maps.Clone(importEKS)),
			change: func(spec map[string]any) { delete(spec, "eks"); spec["aks"] = maps.Clone(importAKS) }, want: "another cloud would be another cluster",
		},
		"ProviderConfig": {
			reason: "As does another account.", from: importSpec("eks", maps.Clone(importEKS)),
			change: func(spec map[string]any) { spec["providerConfigRef"] = map[string]any{"name": "other"} }, want: "another provider configuration",
		},
		"NodeGroups": {
			reason: "Node groups are found one after the other.", from: importSpec("eks", maps.Clone(importEKS)),
			change: func(spec map[string]any) { spec["eks"].(map[string]any)["nodeGroupNames"] = []any{"a"} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := clusterImport("import", tc.from)
			if err := hub.Create(t.Context(), object); err != nil {
				t.Fatalf("Create(...): %v", err)
			}
			defer func() { _ = hub.Delete(t.Context(), object) }()
			changed := object.DeepCopy()
			spec, _, _ := unstructured.NestedMap(changed.Object, "spec")
			tc.change(spec)
			changed.Object["spec"] = spec
			err := hub.Update(t.Context(), changed)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nUpdate(...): got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}
