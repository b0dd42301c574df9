// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Imports: what Masthead writes on the objects that it makes for a ClusterImport.
const (
	// ImportUIDLabel is on everything that an import makes, and holds the UID of its ClusterImport. An object without it is not
	// the import's and never written, whatever its name is.
	ImportUIDLabel = "fleet.masthead.dev/import-uid"

	// ImportNameLabel and ImportNamespaceLabel say which ClusterImport made an object. A name of more than 63 characters is
	// shortened and ends in a hash.
	ImportNameLabel      = "fleet.masthead.dev/import-name"
	ImportNamespaceLabel = "fleet.masthead.dev/import-namespace"

	// ImportedLabel with the value "true" is on the Cluster that reflects an imported cluster, so that selectors of
	// ClusterResourceSets and the like can leave it out.
	ImportedLabel = "fleet.masthead.dev/imported"

	// ImportFinalizer keeps a ClusterImport until everything that it made is gone. It is on ClusterImports alone: a finalizer on a
	// reflection would open the path on which a provider of Cluster API deletes a cluster.
	ImportFinalizer = "fleet.masthead.dev/import"

	// ImportPausedAnnotation is on a reflected Cluster that the import paused, and holds the UID of the ClusterImport. Such a pause
	// is not the user's: the cluster can be enrolled all the same.
	ImportPausedAnnotation = "fleet.masthead.dev/import-paused"

	// ImportAllowedNamespacesAnnotation is written by whoever administers the hub on a cluster-scoped ProviderConfig or
	// ClusterProviderConfig, and lists, separated by commas, the namespaces whose ClusterImports may use it; "*" means every
	// namespace. Without it no ClusterImport may: it would lend the rights of the configuration to anybody who can write one.
	ImportAllowedNamespacesAnnotation = "fleet.masthead.dev/allowed-import-namespaces"

	// ImportCredentialsLabel is on Secrets, and on ServiceAccounts of the hub, that ClusterImports of their namespace may
	// name: with the value "true" all of them, with the UID of a ClusterImport that one. Whoever may write a ClusterImport
	// need not be allowed to read Secrets or to ask for tokens, and would otherwise have any of them be sent to a cluster.
	// Without the label the kubeconfig is withdrawn.
	ImportCredentialsLabel = "fleet.masthead.dev/import-credentials" //nolint:gosec // The name of a label, not a credential.

	// ImportFieldManager is the server-side apply field manager of what the importer writes.
	ImportFieldManager = "masthead-importer"
)

// Types of the conditions of a ClusterImport, beside ConditionReady and ConditionStalled.
const (
	// ConditionPreflight says whether the hub has what the import needs: the kinds, the rights and the provider configuration.
	ConditionPreflight = "Preflight"

	// ConditionAdmissionEnforced says whether the API server refuses what an import must never do, as a dry run of a forbidden
	// object showed. Nothing is created while it is not True.
	ConditionAdmissionEnforced = "AdmissionEnforced"

	// ConditionAlreadyManaged is True while something else manages the cluster, and the import has stopped. It is absent otherwise.
	ConditionAlreadyManaged = "AlreadyManaged"

	// ConditionObserved says whether Crossplane's managed resources show the cluster.
	ConditionObserved = "Observed"

	// ConditionNodePoolsComplete says whether all node pools that are known are shown.
	ConditionNodePoolsComplete = "NodePoolsComplete"

	// ConditionReflected says whether the objects of Cluster API say what was observed.
	ConditionReflected = "Reflected"

	// ConditionKubeconfigReady says whether the Secret with the kubeconfig holds credentials that have not expired.
	ConditionKubeconfigReady = "KubeconfigReady"

	// ConditionWorkloadAccess says what the credentials of the kubeconfig may do in the cluster; its reason is ReadOnly, Admin or None.
	ConditionWorkloadAccess = "WorkloadAccess"
)

// Reasons of the condition Ready of a ClusterImport, beside those of the condition that it waits for.
const (
	// ReasonImported: the cluster is reflected, and its kubeconfig works if one was asked for.
	ReasonImported = "Imported"

	// ReasonUnimporting: the ClusterImport is being deleted, and what it made is removed. Nothing of the cluster is.
	ReasonUnimporting = "Unimporting"
)

// Reasons of the condition Preflight of a ClusterImport.
const (
	// ReasonPreflightPassed: the hub has what the import needs.
	ReasonPreflightPassed = "Passed"

	// ReasonKindsMissing: the hub does not serve a kind that the import needs. The message names it.
	ReasonKindsMissing = "KindsMissing"

	// ReasonKindsInactive: a kind is only there as a ManagedResourceDefinition that is not active. The message names it.
	ReasonKindsInactive = "KindsInactive"

	// ReasonKindsTooOld: the CRD of a managed resource has no managementPolicies with the value Observe.
	ReasonKindsTooOld = "KindsTooOld"

	// ReasonRightsMissing: Masthead lacks a right in the hub. The message names it.
	ReasonRightsMissing = "RightsMissing"

	// ReasonProviderConfigNotFound: there is no provider configuration of that name.
	ReasonProviderConfigNotFound = "ProviderConfigNotFound"

	// ReasonProviderConfigNotAllowed: the provider configuration does not allow the namespace of the ClusterImport.
	ReasonProviderConfigNotAllowed = "ProviderConfigNotAllowed"

	// ReasonInvalidSpec: the spec cannot be followed. The message says why.
	ReasonInvalidSpec = "InvalidSpec"
)

// Reasons of the condition AdmissionEnforced of a ClusterImport.
const (
	// ReasonCanaryDenied: the API server refused the forbidden object, as it must.
	ReasonCanaryDenied = "CanaryDenied"

	// ReasonCanaryFailed: the API server did not refuse it, or could not be asked. The message says which policy is missing.
	ReasonCanaryFailed = "CanaryFailed"
)

// Reasons of the condition AlreadyManaged of a ClusterImport.
const (
	// ReasonNameTaken: an object of the name that the import would use is there, and is not the import's.
	ReasonNameTaken = "NameTaken"

	// ReasonImportedTwice: another ClusterImport, which is older, imports the same cluster.
	ReasonImportedTwice = "ImportedTwice"

	// ReasonManagedByCrossplane: a managed resource with more than the policy Observe stands for the same cluster.
	ReasonManagedByCrossplane = "ManagedByCrossplane"

	// ReasonManagedByClusterAPI: a provider of Cluster API manages the cluster.
	ReasonManagedByClusterAPI = "ManagedByClusterAPI"
)

// Reasons of the condition Observed of a ClusterImport.
const (
	// ReasonObserved: every managed resource is Ready and Synced.
	ReasonObserved = "Observed"

	// ReasonWaitingForProvider: a managed resource is not Ready and Synced yet. The message names it.
	ReasonWaitingForProvider = "WaitingForProvider"

	// ReasonProviderError: a provider cannot observe a managed resource. The message says what it says.
	ReasonProviderError = "ProviderError"

	// ReasonUnexpectedPolicy: a managed resource of the import has more than the policy Observe. It is not touched any more; somebody
	// has to look.
	ReasonUnexpectedPolicy = "UnexpectedPolicy"

	// ReasonUnexpectedIdentity: a managed resource shows another cluster than the one that was asked for.
	ReasonUnexpectedIdentity = "UnexpectedIdentity"
)

// Reasons of the condition NodePoolsComplete of a ClusterImport.
const (
	// ReasonAllPoolsShown: every known pool is shown.
	ReasonAllPoolsShown = "AllPoolsShown"

	// ReasonPoolsMissing: some pools cannot be observed. The message names them.
	ReasonPoolsMissing = "PoolsMissing"

	// ReasonPoolsUnknown: nothing says which pools the cluster has: the cloud does not list them, the spec names none, and the cluster's
	// Nodes cannot be read.
	ReasonPoolsUnknown = "PoolsUnknown"
)

// Reasons of the condition Reflected of a ClusterImport.
const (
	// ReasonReflected: the objects of Cluster API say what was observed.
	ReasonReflected = "Reflected"

	// ReasonReflectionRefused: the API server refused an object. The message says which and why.
	ReasonReflectionRefused = "ReflectionRefused"
)

// Reasons of the condition KubeconfigReady of a ClusterImport.
const (
	// ReasonKubeconfigWritten: the Secret holds the kubeconfig.
	ReasonKubeconfigWritten = "KubeconfigWritten"

	// ReasonKubeconfigNotRequested: the spec asks for no kubeconfig.
	ReasonKubeconfigNotRequested = "NotRequested"

	// ReasonKubeconfigRefused: what the provider gave has something that is refused in kubeconfigs, as exec plugins are.
	ReasonKubeconfigRefused = "KubeconfigRefused"

	// ReasonCredentialsNotFound: a Secret that the spec names is not there, or lacks the key, or the source that it names
	// has given nothing yet.
	ReasonCredentialsNotFound = "CredentialsNotFound"

	// ReasonCredentialsNotAllowed: a Secret, or a ServiceAccount of the hub, that the spec names does not bear the label
	// for credentials of imports, or bears it for another import.
	ReasonCredentialsNotAllowed = "CredentialsNotAllowed"

	// ReasonHubServiceAccountNotFound: the ServiceAccount of the hub that the spec names is not there.
	ReasonHubServiceAccountNotFound = "HubServiceAccountNotFound"

	// ReasonHubServiceAccountNotAllowed: nobody granted Masthead to get the ServiceAccount of the hub that the spec names,
	// and to ask for its tokens. The message says which rights are missing.
	ReasonHubServiceAccountNotAllowed = "HubServiceAccountNotAllowed"

	// ReasonEndpointNotAllowed: the token endpoint is none of those that the operator allows.
	ReasonEndpointNotAllowed = "TokenEndpointNotAllowed"

	// ReasonTokenRefused: the token endpoint gave no token.
	ReasonTokenRefused = "TokenRefused"

	// ReasonKubeconfigExpired: the credentials have expired and no new ones are there.
	ReasonKubeconfigExpired = "Expired"

	// ReasonServiceAccountNotFound: the imported cluster has no ServiceAccount of the name that the spec gives.
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"

	// ReasonServiceAccountTokenRefused: the imported cluster refuses the credentials of the source, or does not let them create
	// tokens of the ServiceAccount.
	ReasonServiceAccountTokenRefused = "ServiceAccountTokenRefused"

	// ReasonServiceAccountTokenInvalid: what the imported cluster answered is no token, or one that does not expire when it was
	// asked to.
	ReasonServiceAccountTokenInvalid = "ServiceAccountTokenInvalid"

	// ReasonServiceAccountTokenUnavailable: the imported cluster could not be asked, or its answer broke off or is larger
	// than there is room for. It is asked again.
	ReasonServiceAccountTokenUnavailable = "ServiceAccountTokenUnavailable"
)

// Reasons of the condition WorkloadAccess of a ClusterImport.
const (
	// ReasonAccessReadOnly: the credentials may read, and not write Nodes, workloads or rights.
	ReasonAccessReadOnly = "ReadOnly"

	// ReasonAccessWrite: the credentials may write some of what was asked about, and are no administrator's.
	ReasonAccessWrite = "Write"

	// ReasonAccessAdmin: the credentials may do everything.
	ReasonAccessAdmin = "Admin"

	// ReasonAccessNone: the credentials are refused, or may not even read Nodes.
	ReasonAccessNone = "None"

	// ReasonAccessUnknown: the cluster could not be asked.
	ReasonAccessUnknown = "Unreachable"
)
