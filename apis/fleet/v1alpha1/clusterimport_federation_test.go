// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// poolProvider is a provider of a workload identity pool of Google's.
const poolProvider = "//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/hubs/providers/europe"

// TestWorkloadIdentityOfClusterImports: the author of a ClusterImport chooses the ServiceAccount, in their own
// namespace, and never an audience that the hub's API server could have.
func TestWorkloadIdentityOfClusterImports(t *testing.T) {
	const (
		of    = "spec.kubeconfig.google.workloadIdentity."
		uuid  = "11111111-2222-3333-4444-555555555555"
		oneOf = "exactly one of the fields in [keySecretRef workloadIdentity] must be set"
		oneAt = "exactly one of the fields in [clientSecretRef workloadIdentity] must be set"
	)
	secret := map[string]any{"name": "a", "key": "b"}
	google := func(change ...any) map[string]any {
		g := map[string]any{"serviceAccountName": "shop-importer", "audience": poolProvider}
		for i := 0; i < len(change); i += 2 {
			g[change[i].(string)] = change[i+1]
		}
		return map[string]any{"source": "GoogleServiceAccount", "google": map[string]any{"workloadIdentity": g}}
	}
	azure := func(change ...any) map[string]any {
		a := map[string]any{"tenantID": uuid, "clientID": uuid, "workloadIdentity": map[string]any{"serviceAccountName": "shop-importer"}}
		for i := 0; i < len(change); i += 2 {
			a[change[i].(string)] = change[i+1]
		}
		return map[string]any{"source": "AzureServicePrincipal", "azure": a}
	}
	with := func(k map[string]any, field string, value any) map[string]any {
		k = maps.Clone(k)
		k[field] = value
		return k
	}
	cases := map[string]struct {
		reason     string
		cloud      string
		kubeconfig map[string]any
		want       string
	}{
		"Google": {reason: "A ServiceAccount and a provider are enough.", cloud: "gke", kubeconfig: google()},
		"GoogleImpersonation": {
			reason: "The federated identity may be allowed to impersonate a service account.", cloud: "gke",
			kubeconfig: google("serviceAccountEmail", "reader@shop-project.iam.gserviceaccount.com", "stsEndpoint", "https://sts.example.org/v1/token",
				"credentialsEndpoint", "https://iam.example.org"),
		},
		"Azure":       {reason: "A ServiceAccount, a tenant and a client are enough.", cloud: "aks", kubeconfig: azure()},
		"GoogleOfAKS": {reason: "AKS takes no token of Google's.", cloud: "aks", kubeconfig: google(), want: "kubeconfig.google is for GKE"},
		"GoogleOfEKS": {reason: "Neither does EKS.", cloud: "eks", kubeconfig: google(), want: "kubeconfig.google is for GKE"},
		"AzureOfGKE":  {reason: "GKE takes no token of Entra ID's.", cloud: "gke", kubeconfig: azure(), want: "kubeconfig.azure is for AKS"},
		"Neither": {
			reason: "Something has to be shown to Google.", cloud: "gke",
			kubeconfig: map[string]any{"source": "GoogleServiceAccount", "google": map[string]any{}}, want: oneOf,
		},
		"Both": {
			reason: "One of them would be without effect.", cloud: "gke", want: oneOf, kubeconfig: map[string]any{
				"source": "GoogleServiceAccount",
				"google": map[string]any{"keySecretRef": secret, "workloadIdentity": map[string]any{"serviceAccountName": "a", "audience": poolProvider}},
			},
		},
		"KeyAlone": {
			reason: "A key is as good as before.", cloud: "gke",
			kubeconfig: map[string]any{"source": "GoogleServiceAccount", "google": map[string]any{"keySecretRef": secret}},
		},
		"EmptyKey": {
			reason: "A key that is named has a name.", cloud: "gke", want: "spec.kubeconfig.google.keySecretRef.name",
			kubeconfig: map[string]any{"source": "GoogleServiceAccount", "google": map[string]any{"keySecretRef": map[string]any{}}},
		},
		"OtherSource": {
			reason: "What another source has would be without effect.", cloud: "gke", kubeconfig: with(google(), "source", "None"),
			want: "source and google disagree",
		},
		"AzureBoth": {reason: "So it is for Azure.", cloud: "aks", kubeconfig: azure("clientSecretRef", secret), want: oneAt},
		"AzureNeither": {
			reason: "And here.", cloud: "aks", want: oneAt, kubeconfig: map[string]any{
				"source": "AzureServicePrincipal", "azure": map[string]any{"tenantID": uuid, "clientID": uuid},
			},
		},
		"Namespace": {
			reason: "The ServiceAccount is always one of the import's own namespace.", cloud: "gke",
			kubeconfig: google("serviceAccountNamespace", "kube-system"), want: "unknown field",
		},
		"NamespaceInTheName": {
			reason: "Neither is one hidden in the name.", cloud: "gke", kubeconfig: google("serviceAccountName", "../../kube-system/serviceaccounts/admin"),
			want: of + "serviceAccountName",
		},
		"AudienceOfTheHub": {
			reason: "Its token would be one for the hub.", cloud: "gke", kubeconfig: google("audience", "https://kubernetes.default.svc.cluster.local"),
			want: of + "audience",
		},
		"NoAudience": {reason: "An API server takes its own where there is none.", cloud: "gke", kubeconfig: google("audience", ""), want: of + "audience"},
		"AudienceWithinAnother": {
			reason: "The prefix is at the beginning.", cloud: "gke", kubeconfig: google("audience", "https://hub.example.org?"+poolProvider), want: of + "audience",
		},
		"TwoAudiences": {reason: "It is one, and no list.", cloud: "gke", kubeconfig: google("audience", poolProvider+",https://hub.example.org"), want: of + "audience"},
		"AudienceOfAWorkforce": {
			reason: "A workforce pool is one of people.", cloud: "gke",
			kubeconfig: google("audience", "//iam.googleapis.com/locations/global/workforcePools/people/providers/sso"), want: of + "audience",
		},
		"EmailWithAPath": {
			reason: "It is a part of a URL.", cloud: "gke", kubeconfig: google("serviceAccountEmail", "a@b.iam.gserviceaccount.com/../c"), want: of + "serviceAccountEmail",
		},
		"EmailOfAPerson": {reason: "People are not impersonated.", cloud: "gke", kubeconfig: google("serviceAccountEmail", "jane@example.org"), want: of + "serviceAccountEmail"},
		"PlainHTTP": {
			reason: "A token is not sent in the clear.", cloud: "gke", kubeconfig: google("stsEndpoint", "http://sts.googleapis.com/v1/token"),
			want: "it begins with https://",
		},
		"PlainCredentials": {
			reason: "Neither is one of Google's.", cloud: "gke", kubeconfig: google("credentialsEndpoint", "http://iamcredentials.googleapis.com"),
			want: "it begins with https://",
		},
		"AzureAudience": {
			reason: "There is one audience for Entra ID, and nothing to choose.", cloud: "aks", want: "unknown field",
			kubeconfig: azure("workloadIdentity", map[string]any{"serviceAccountName": "a", "audience": "https://kubernetes.default.svc"}),
		},
		"AzureTenant": {reason: "It is a part of a URL.", cloud: "aks", kubeconfig: azure("tenantID", "../common"), want: "spec.kubeconfig.azure.tenantID"},
		"AzureName": {
			reason: "A ServiceAccount has a name.", cloud: "aks", kubeconfig: azure("workloadIdentity", map[string]any{"serviceAccountName": ""}),
			want: "spec.kubeconfig.azure.workloadIdentity.serviceAccountName",
		},
	}
	clouds := map[string]map[string]any{"eks": importEKS, "aks": importAKS, "gke": importGKE}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := clusterImport("federated", importSpec(tc.cloud, clouds[tc.cloud], "kubeconfig", tc.kubeconfig))
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
