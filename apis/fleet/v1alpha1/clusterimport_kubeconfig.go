// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// KubeconfigSource is the source of the credentials for an imported cluster.
//
// +kubebuilder:validation:Enum=Provider;GoogleServiceAccount;AzureServicePrincipal;Token;None
type KubeconfigSource string

const (
	// KubeconfigSourceProvider uses what the Crossplane provider publishes: a token for EKS, and the user's kubeconfig for
	// AKS.
	KubeconfigSourceProvider KubeconfigSource = "Provider"

	// KubeconfigSourceGoogleServiceAccount creates Google tokens: with the key of a service account, or without any key by
	// workload identity federation.
	KubeconfigSourceGoogleServiceAccount KubeconfigSource = "GoogleServiceAccount"

	// KubeconfigSourceAzureServicePrincipal creates tokens of a service principal, for AKS clusters with Entra ID: with
	// its secret, or without any secret by workload identity federation.
	KubeconfigSourceAzureServicePrincipal KubeconfigSource = "AzureServicePrincipal"

	// KubeconfigSourceToken uses a token from a Secret.
	KubeconfigSourceToken KubeconfigSource = "Token"

	// KubeconfigSourceNone writes no kubeconfig. The cluster is reflected, but cannot be connected.
	KubeconfigSourceNone KubeconfigSource = "None"
)

// KubeconfigUser says whose credentials are used, where a provider publishes several.
//
// +kubebuilder:validation:Enum=User;Admin
type KubeconfigUser string

const (
	// KubeconfigUserUser uses the user's credentials.
	KubeconfigUserUser KubeconfigUser = "User"

	// KubeconfigUserAdmin uses the cluster administrator's.
	KubeconfigUserAdmin KubeconfigUser = "Admin"
)

// ServerCertificate says whose certificate an API server presents.
//
// +kubebuilder:validation:Enum=Cluster;Public
type ServerCertificate string

const (
	// ServerCertificateCluster is the certificate of the observed API server, for its observed name.
	ServerCertificateCluster ServerCertificate = "Cluster"

	// ServerCertificatePublic is a certificate of a public authority, for the name in the URL.
	ServerCertificatePublic ServerCertificate = "Public"
)

// ImportServer is another address of an API server.
type ImportServer struct {
	// url is an https URL, for a gateway with a path.
	// +required
	URL HTTPSURL `json:"url"`

	// certificate is Cluster (the observed API server's) or Public (a gateway's, by a public authority).
	// +kubebuilder:default=Cluster
	// +optional
	Certificate ServerCertificate `json:"certificate,omitempty"`
}

// ImportKubeconfig is the source of the credentials for an imported cluster. Secrets are read, and tokens of
// ServiceAccounts are requested, in the namespace of the ClusterImport alone.
//
// +kubebuilder:validation:XValidation:rule="has(self.google)==(self.source=='GoogleServiceAccount')",message="source and google disagree"
// +kubebuilder:validation:XValidation:rule="has(self.azure)==(self.source=='AzureServicePrincipal')",message="source and azure disagree"
// +kubebuilder:validation:XValidation:rule="has(self.tokenSecretRef)==(self.source=='Token')",message="source and tokenSecretRef disagree"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountRef)||self.source!='None'",message="no serviceAccountRef with None"
type ImportKubeconfig struct {
	// source is Provider (what the Crossplane provider publishes; nothing for GKE), GoogleServiceAccount (for GKE) or
	// AzureServicePrincipal (for AKS with Entra ID; tokens made with a key or a secret, or by workload identity
	// federation), Token (in a user's Secret) or None.
	// +kubebuilder:default=Provider
	// +optional
	Source KubeconfigSource `json:"source,omitempty"`

	// server is another address of the API server, which the operator allows with --allowed-import-servers.
	// +optional
	Server *ImportServer `json:"server,omitempty"`

	// user is User or Admin, where the provider publishes both. Admin is for AKS and gives all readers of the Secret every
	// right in the cluster.
	// +kubebuilder:default=User
	// +optional
	User KubeconfigUser `json:"user,omitempty"`

	// google is a Google service account, or an identity that Google federates.
	// +optional
	Google *GoogleServiceAccount `json:"google,omitempty"`

	// azure is a service principal of Entra ID.
	// +optional
	Azure *AzureServicePrincipal `json:"azure,omitempty"`

	// tokenSecretRef is a Secret with a token. When its content changes, the kubeconfig is updated.
	// +optional
	TokenSecretRef *SecretKeyReference `json:"tokenSecretRef,omitempty"`

	// serviceAccountRef is an existing ServiceAccount of the imported cluster. The kubeconfig then holds a token of it,
	// which expires after an hour, and the credentials of the source are used only to request these tokens. Absent
	// means that the kubeconfig holds the credentials of the source.
	// +optional
	ServiceAccountRef *ServiceAccountReference `json:"serviceAccountRef,omitempty"`
}

// SecretKeyReference names a key of a Secret in the same namespace, which must have the label
// fleet.masthead.dev/import-credentials with the UID of the ClusterImport, or "true" for all in the namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// key in the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// GoogleServiceAccount is a service account of Google Cloud, by its key, or an identity that Google federates.
//
// +kubebuilder:validation:ExactlyOneOf=keySecretRef;workloadIdentity
type GoogleServiceAccount struct {
	// keySecretRef is a Secret with the service account's key file, whose type is service_account. Its token_uri must be
	// one that the operator of Masthead allows.
	// +optional
	KeySecretRef SecretKeyReference `json:"keySecretRef,omitzero"`

	// workloadIdentity uses the identity of a ServiceAccount of the hub in Google Cloud, instead of a key.
	// +optional
	WorkloadIdentity *GoogleWorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// AzureServicePrincipal is a service principal of Entra ID, by its secret or by a federated credential.
//
// +kubebuilder:validation:ExactlyOneOf=clientSecretRef;workloadIdentity
type AzureServicePrincipal struct {
	// tenantID of Entra ID.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	// +kubebuilder:validation:MaxLength=36
	// +required
	TenantID string `json:"tenantID"`

	// clientID of the service principal.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	// +kubebuilder:validation:MaxLength=36
	// +required
	ClientID string `json:"clientID"`

	// clientSecretRef is a Secret with the service principal's secret.
	// +optional
	ClientSecretRef SecretKeyReference `json:"clientSecretRef,omitzero"`

	// workloadIdentity presents the token of a ServiceAccount of the hub to Entra ID, instead of a secret. The service
	// principal, or the managed identity, needs a federated credential for it.
	// +optional
	WorkloadIdentity *AzureWorkloadIdentity `json:"workloadIdentity,omitempty"`

	// authorityHost is the address of Entra ID. The operator of Masthead must allow it.
	// +kubebuilder:default="https://login.microsoftonline.com"
	// +optional
	AuthorityHost HTTPSURL `json:"authorityHost,omitempty"`
}
