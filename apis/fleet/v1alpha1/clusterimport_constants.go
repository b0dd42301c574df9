// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Imports: what Masthead sets on the objects that it creates for a ClusterImport.
const (
	// ImportUIDLabel is on everything that an import creates, and holds the UID of its ClusterImport. An object without it
	// does not belong to the import and is never written, regardless of its name.
	ImportUIDLabel = "fleet.masthead.dev/import-uid"

	// ImportNameLabel and ImportNamespaceLabel name the ClusterImport that created an object. A name of more than 63
	// characters is shortened and ends in a hash.
	ImportNameLabel      = "fleet.masthead.dev/import-name"
	ImportNamespaceLabel = "fleet.masthead.dev/import-namespace"

	// ImportedLabel with the value "true" is on the Cluster that reflects an imported cluster, so that selectors of
	// ClusterResourceSets and others can exclude it.
	ImportedLabel = "fleet.masthead.dev/imported"

	// ImportFinalizer keeps a ClusterImport until everything that it created is gone. It is on ClusterImports alone: a
	// finalizer on a reflection would enable the code path in which a provider of Cluster API deletes a cluster.
	ImportFinalizer = "fleet.masthead.dev/import"

	// ImportPausedAnnotation is on a reflected Cluster that the import paused, and holds the UID of the ClusterImport.
	// Such a pause is not the user's: the cluster can still be enrolled.
	ImportPausedAnnotation = "fleet.masthead.dev/import-paused"

	// ImportAllowedNamespacesAnnotation is set by hub administrators on a cluster-scoped ProviderConfig or
	// ClusterProviderConfig, and lists, separated by commas, the namespaces whose ClusterImports may use it; "*" means
	// every namespace. Without it no ClusterImport may: anyone who can write one would gain the rights of the
	// configuration.
	ImportAllowedNamespacesAnnotation = "fleet.masthead.dev/allowed-import-namespaces"

	// ImportCredentialsLabel is on Secrets, and on ServiceAccounts of the hub, that ClusterImports of their namespace may
	// name: with the value "true" all of them, with the UID of a ClusterImport only that one. Authors of ClusterImports
	// may lack the right to read Secrets or to request tokens, and could otherwise have any of them sent to a cluster.
	// Without the label the kubeconfig is withdrawn.
	ImportCredentialsLabel = "fleet.masthead.dev/import-credentials" //nolint:gosec // The name of a label, not a credential.

	// ImportFieldManager is the server-side apply field manager of what the importer writes.
	ImportFieldManager = "masthead-importer"
)

// Types of the conditions of a ClusterImport, besides ConditionReady and ConditionStalled.
const (
	// ConditionPreflight says whether the hub has what the import needs: the kinds, the rights and the provider
	// configuration.
	ConditionPreflight = "Preflight"

	// ConditionAdmissionEnforced says whether the API server denies what an import must never do, as tested by a dry run
	// of a forbidden object. Nothing is created while it is not True.
	ConditionAdmissionEnforced = "AdmissionEnforced"

	// ConditionAlreadyManaged is True while the import has stopped because the cluster is managed otherwise. It is False
	// where tags of the cluster name other managers and the import goes on, and absent otherwise.
	ConditionAlreadyManaged = "AlreadyManaged"

	// ConditionObserved says whether Crossplane's managed resources show the cluster.
	ConditionObserved = "Observed"

	// ConditionNodePoolsComplete says whether all known node pools are shown.
	ConditionNodePoolsComplete = "NodePoolsComplete"

	// ConditionReflected says whether the objects of Cluster API match what was observed.
	ConditionReflected = "Reflected"

	// ConditionKubeconfigReady says whether the Secret with the kubeconfig holds credentials that have not expired.
	ConditionKubeconfigReady = "KubeconfigReady"

	// ConditionWorkloadAccess describes the rights of the kubeconfig in the cluster; its reason is ReadOnly, Write,
	// Admin, None or Unreachable.
	ConditionWorkloadAccess = "WorkloadAccess"
)

// Reasons of the condition Ready of a ClusterImport, beside those of the condition that it waits for.
const (
	// ReasonImported: the cluster is reflected, and its kubeconfig works if one was requested.
	ReasonImported = "Imported"

	// ReasonUnimporting: the ClusterImport is being deleted, and what it created is removed. The cluster itself is not
	// changed.
	ReasonUnimporting = "Unimporting"
)

// Reasons of the condition Preflight of a ClusterImport.
const (
	// ReasonPreflightPassed: the hub has what the import needs.
	ReasonPreflightPassed = "Passed"

	// ReasonKindsMissing: the hub does not serve a kind that the import needs. The message names it.
	ReasonKindsMissing = "KindsMissing"

	// ReasonKindsInactive: a kind exists only as an inactive ManagedResourceDefinition. The message names it.
	ReasonKindsInactive = "KindsInactive"

	// ReasonKindsTooOld: the CRD of a managed resource has no managementPolicies with the value Observe.
	ReasonKindsTooOld = "KindsTooOld"

	// ReasonRightsMissing: Masthead lacks a right in the hub. The message names it.
	ReasonRightsMissing = "RightsMissing"

	// ReasonProviderConfigNotFound: no provider configuration of that name exists.
	ReasonProviderConfigNotFound = "ProviderConfigNotFound"

	// ReasonProviderConfigNotAllowed: the provider configuration does not allow the namespace of the ClusterImport.
	ReasonProviderConfigNotAllowed = "ProviderConfigNotAllowed"

	// ReasonInvalidSpec: the spec is invalid. The message says why.
	ReasonInvalidSpec = "InvalidSpec"
)

// Reasons of the condition AdmissionEnforced of a ClusterImport.
const (
	// ReasonCanaryDenied: the API server denied the forbidden object, as required.
	ReasonCanaryDenied = "CanaryDenied"

	// ReasonCanaryFailed: the API server did not deny it, or could not be reached. The message says which policy is
	// missing.
	ReasonCanaryFailed = "CanaryFailed"
)

// Reasons of the condition AlreadyManaged of a ClusterImport.
const (
	// ReasonNameTaken: an object of the name that the import would use exists, and is not the import's.
	ReasonNameTaken = "NameTaken"

	// ReasonImportedTwice: another ClusterImport, which is older, imports the same cluster.
	ReasonImportedTwice = "ImportedTwice"

	// ReasonManagedByCrossplane: a managed resource with more than the policy Observe represents the same cluster.
	ReasonManagedByCrossplane = "ManagedByCrossplane"

	// ReasonManagedByClusterAPI: the cluster has the tag of a provider of Cluster API, which the spec does not acknowledge.
	ReasonManagedByClusterAPI = "ManagedByClusterAPI"

	// ReasonTagsOfOthers: tags of the cluster name other managers, such as a Crossplane elsewhere, or a provider of Cluster
	// API whose tag the spec acknowledges. The import goes on.
	ReasonTagsOfOthers = "TagsOfOthers"
)

// Reasons of the condition Observed of a ClusterImport.
const (
	// ReasonObserved: every managed resource is Ready and Synced.
	ReasonObserved = "Observed"

	// ReasonWaitingForProvider: a managed resource is not Ready and Synced yet. The message names it.
	ReasonWaitingForProvider = "WaitingForProvider"

	// ReasonProviderError: a provider cannot observe a managed resource. The message has the provider's error.
	ReasonProviderError = "ProviderError"

	// ReasonUnexpectedPolicy: a managed resource of the import has more than the policy Observe. It is no longer touched;
	// a user must check it.
	ReasonUnexpectedPolicy = "UnexpectedPolicy"

	// ReasonUnexpectedIdentity: a managed resource shows another cluster than the requested one, or one that was created
	// again under its name.
	ReasonUnexpectedIdentity = "UnexpectedIdentity"
)

// Reasons of the condition NodePoolsComplete of a ClusterImport.
const (
	// ReasonAllPoolsShown: every known pool is shown.
	ReasonAllPoolsShown = "AllPoolsShown"

	// ReasonPoolsMissing: some pools cannot be observed. The message names them.
	ReasonPoolsMissing = "PoolsMissing"

	// ReasonPoolsUnknown: the cluster's pools cannot be determined: the cloud does not list them, the spec names none, and
	// the cluster's Nodes cannot be read.
	ReasonPoolsUnknown = "PoolsUnknown"
)

// Reasons of the condition Reflected of a ClusterImport.
const (
	// ReasonReflected: the objects of Cluster API match what was observed.
	ReasonReflected = "Reflected"

	// ReasonReflectionRefused: the API server rejected an object. The message says which and why.
	ReasonReflectionRefused = "ReflectionRefused"
)

// Reasons of the condition KubeconfigReady of a ClusterImport.
const (
	// ReasonKubeconfigWritten: the Secret holds the kubeconfig.
	ReasonKubeconfigWritten = "KubeconfigWritten"

	// ReasonKubeconfigNotRequested: the spec requests no kubeconfig.
	ReasonKubeconfigNotRequested = "NotRequested"

	// ReasonKubeconfigRefused: the provider's kubeconfig has a refused feature, such as an exec plugin.
	ReasonKubeconfigRefused = "KubeconfigRefused"

	// ReasonCredentialsNotFound: a Secret that the spec names is missing or lacks the key, or the named source has
	// provided nothing yet.
	ReasonCredentialsNotFound = "CredentialsNotFound"

	// ReasonCredentialsNotAllowed: a Secret, or a ServiceAccount of the hub, that the spec names does not have the label
	// for credentials of imports, or has it for another import.
	ReasonCredentialsNotAllowed = "CredentialsNotAllowed"

	// ReasonHubServiceAccountNotFound: the ServiceAccount of the hub that the spec names does not exist.
	ReasonHubServiceAccountNotFound = "HubServiceAccountNotFound"

	// ReasonHubServiceAccountNotAllowed: Masthead lacks the right to get the ServiceAccount of the hub that the spec
	// names, or to request its tokens. The message says which rights are missing.
	ReasonHubServiceAccountNotAllowed = "HubServiceAccountNotAllowed"

	// ReasonEndpointNotAllowed: the operator does not allow the token endpoint.
	ReasonEndpointNotAllowed = "TokenEndpointNotAllowed"

	// ReasonTokenRefused: the token endpoint gave no token.
	ReasonTokenRefused = "TokenRefused"

	// ReasonKubeconfigExpired: the credentials have expired and there are no new ones.
	ReasonKubeconfigExpired = "Expired"

	// ReasonServiceAccountNotFound: the imported cluster has no ServiceAccount of the name that the spec gives.
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"

	// ReasonServiceAccountTokenRefused: the imported cluster refuses the credentials of the source, or does not let them
	// create tokens of the ServiceAccount.
	ReasonServiceAccountTokenRefused = "ServiceAccountTokenRefused"

	// ReasonServiceAccountTokenInvalid: the imported cluster's answer is no token, or one that does not expire at the
	// requested time.
	ReasonServiceAccountTokenInvalid = "ServiceAccountTokenInvalid"

	// ReasonServiceAccountTokenUnavailable: the imported cluster could not be reached, or its answer was cut off or too
	// large. The request is retried.
	ReasonServiceAccountTokenUnavailable = "ServiceAccountTokenUnavailable"
)

// Reasons of the condition WorkloadAccess of a ClusterImport.
const (
	// ReasonAccessReadOnly: the credentials may read, but not write Nodes, workloads or rights.
	ReasonAccessReadOnly = "ReadOnly"

	// ReasonAccessWrite: the credentials may write some of what was checked, but are no administrator's.
	ReasonAccessWrite = "Write"

	// ReasonAccessAdmin: the credentials may do everything.
	ReasonAccessAdmin = "Admin"

	// ReasonAccessNone: the credentials are rejected, or may not even read Nodes.
	ReasonAccessNone = "None"

	// ReasonAccessUnknown: the cluster could not be reached.
	ReasonAccessUnknown = "Unreachable"
)
