// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "cmp"

const (
	// ImportGoogleSTSEndpoint is where Google exchanges a ServiceAccount's token for one of its own.
	ImportGoogleSTSEndpoint = "https://sts.googleapis.com/v1/token"

	// ImportGoogleCredentialsEndpoint is where Google issues tokens of its service accounts.
	ImportGoogleCredentialsEndpoint = "https://iamcredentials.googleapis.com" //nolint:gosec // An address.

	// ImportGoogleAudiencePrefix is the prefix of the audience of a token that is exchanged at Google. No API server has
	// such an audience.
	ImportGoogleAudiencePrefix = "//iam.googleapis.com/"

	// ImportAzureAudience is the audience of a token that is exchanged at Entra ID, the same in every tenant.
	ImportAzureAudience = "api://AzureADTokenExchange"
)

// HTTPSURL is a URL that is requested over TLS only.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="it begins with https://"
type HTTPSURL string

// HubServiceAccountName names a ServiceAccount of the hub, in the namespace of the ClusterImport.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type HubServiceAccountName string

// GoogleWorkloadIdentity is the identity of a ServiceAccount of the hub in Google Cloud by workload identity
// federation. Masthead requests a short-lived token of the ServiceAccount from the hub, for Google alone, and exchanges
// it at Google for one of Google's.
type GoogleWorkloadIdentity struct {
	// serviceAccountName is a ServiceAccount in the namespace of the ClusterImport. It must have the label
	// fleet.masthead.dev/import-credentials with the UID of the ClusterImport, or "true" for all in the namespace, and a
	// Role with resourceNames must let Masthead get it and create serviceaccounts/token for it.
	// +required
	ServiceAccountName HubServiceAccountName `json:"serviceAccountName"`

	// audience is the provider, of a workload identity pool, that trusts the hub: projects/NUMBER/locations/global/,
	// workloadIdentityPools/POOL/ and providers/PROVIDER after //iam.googleapis.com/. The token of the ServiceAccount is
	// for this audience only, so the hub does not accept it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^//iam\.googleapis\.com/projects/\d+/locations/[-\w]+/workloadIdentityPools/[-\w]+/providers/[-\w]+$`
	// +required
	Audience string `json:"audience"`

	// serviceAccountEmail is a Google service account that the federated identity may impersonate. Absent means that the
	// federated identity itself is used in the cluster.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9]*@[a-z0-9][-.a-z0-9]*\.gserviceaccount\.com$`
	// +optional
	ServiceAccountEmail string `json:"serviceAccountEmail,omitempty"`

	// stsEndpoint is where the token of the ServiceAccount is exchanged. The operator of Masthead must allow it. Absent
	// means https://sts.googleapis.com/v1/token.
	// +optional
	STSEndpoint HTTPSURL `json:"stsEndpoint,omitempty"`

	// credentialsEndpoint is where the account of serviceAccountEmail is impersonated. The operator of Masthead must
	// allow it. Absent means https://iamcredentials.googleapis.com.
	// +optional
	CredentialsEndpoint HTTPSURL `json:"credentialsEndpoint,omitempty"`
}

// AzureWorkloadIdentity is the identity of a ServiceAccount of the hub in Entra ID by a federated credential. Masthead
// requests a short-lived token of the ServiceAccount from the hub, for Entra ID alone, and exchanges it at Entra ID for
// one of Entra ID's.
type AzureWorkloadIdentity struct {
	// serviceAccountName is a ServiceAccount in the namespace of the ClusterImport, with label and Role as for Google. Its
	// token has the audience api://AzureADTokenExchange only, so the hub does not accept it.
	// +required
	ServiceAccountName HubServiceAccountName `json:"serviceAccountName"`
}

// STS returns where the token of the ServiceAccount is exchanged, or the default.
func (g *GoogleWorkloadIdentity) STS() string {
	return cmp.Or(string(g.STSEndpoint), ImportGoogleSTSEndpoint)
}

// Credentials returns where a Google service account is impersonated, or the default.
func (g *GoogleWorkloadIdentity) Credentials() string {
	return cmp.Or(string(g.CredentialsEndpoint), ImportGoogleCredentialsEndpoint)
}

// HubServiceAccount returns the ServiceAccount of the hub, in the namespace of the ClusterImport, whose tokens are used
// for the kubeconfig; empty for none.
func (s *ClusterImportSpec) HubServiceAccount() string {
	k := s.Kubeconfig
	switch source := s.KubeconfigSource(); {
	case source == KubeconfigSourceGoogleServiceAccount && k.Google != nil && k.Google.WorkloadIdentity != nil:
		return string(k.Google.WorkloadIdentity.ServiceAccountName)
	case source == KubeconfigSourceAzureServicePrincipal && k.Azure != nil && k.Azure.WorkloadIdentity != nil:
		return string(k.Azure.WorkloadIdentity.ServiceAccountName)
	default:
		return ""
	}
}
