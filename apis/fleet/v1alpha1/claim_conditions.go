// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionAgentSynced is the condition that Masthead adds to a claim in a workload cluster, beside those that it
// propagates from Crossplane in the hub. It is True when the hub's object matches the claim and the claim shows the
// hub's status. Stalled and Reconciling express it for tools that do not know it.
const ConditionAgentSynced = "AgentSynced"

// Reasons of the condition AgentSynced of a claim, beside ClassNotFound.
const (
	// ReasonSynced: the hub matches the claim.
	ReasonSynced = "Synced"

	// ReasonConflict: the name is taken in the hub by a claim of another source, or by one that was made in the hub.
	ReasonConflict = "Conflict"

	// ReasonNamespaceRecreated: the object of that name in the hub belongs to an earlier namespace of the same name.
	ReasonNamespaceRecreated = "NamespaceRecreated"

	// ReasonTargetNamespaceMissing: the claim's target namespace in the hub does not exist or is being deleted.
	ReasonTargetNamespaceMissing = "TargetNamespaceMissing"

	// ReasonTargetNamespaceNotAllowed: the claim's target namespace in the hub is reserved for the hub, or the
	// EnrollmentClass does not allow choosing it.
	ReasonTargetNamespaceNotAllowed = "TargetNamespaceNotAllowed"

	// ReasonTargetNamespaceInvalid: the target annotation of the claim's namespace is not a valid namespace name.
	ReasonTargetNamespaceInvalid = "TargetNamespaceInvalid"

	// ReasonTargetNamespaceChanged: the claim is not in its target namespace of the hub. It stays there, and is not
	// synchronised, until it is deleted, the namespace is changed back, or a move is requested.
	ReasonTargetNamespaceChanged = "TargetNamespaceChanged"

	// ReasonMoving: the claim in the hub is being deleted in one namespace, and will be created again in another.
	ReasonMoving = "Moving"

	// ReasonCredentialsMissing: the named Secret with credentials for the hub does not exist.
	ReasonCredentialsMissing = "CredentialsMissing"

	// ReasonCredentialsInvalid: that Secret holds no usable credentials, or more than credentials; the message gives
	// details.
	ReasonCredentialsInvalid = "CredentialsInvalid"

	// ReasonCredentialsRejected: the hub does not accept the credentials in that Secret.
	ReasonCredentialsRejected = "CredentialsRejected"

	// ReasonImpersonationForbidden: Masthead may not act as the ServiceAccount that the EnrollmentClass names.
	ReasonImpersonationForbidden = "ImpersonationForbidden"

	// ReasonHubForbidden: Masthead, or the identity that it uses, lacks a right in the hub; the message names it.
	ReasonHubForbidden = "Forbidden"

	// ReasonRejected: the hub refused the claim's content; the message says why.
	ReasonRejected = "Rejected"

	// ReasonHubUnavailable: the hub could not process the claim, as when one of its webhooks is down. The condition is
	// Unknown.
	ReasonHubUnavailable = "HubUnavailable"

	// ReasonInvalidClass: the EnrollmentClass that the cluster names does not define a target.
	ReasonInvalidClass = "InvalidClass"

	// ReasonKindNotOffered: the hub no longer publishes the claim's kind, or has it in another version than the cluster,
	// or the class does not offer it.
	ReasonKindNotOffered = "KindNotOffered"

	// ReasonKindNotServed: the hub does not serve the claim's kind now.
	ReasonKindNotServed = "KindNotServed"

	// ReasonClaimLimitReached: the claim is not pushed, because the EnrollmentClass allows no more objects in the hub for
	// the claims of its cluster or namespace; the message says which.
	ReasonClaimLimitReached = "ClaimLimitReached"

	// ReasonReferencesUnresolved: one of the claim's references is not resolved yet.
	ReasonReferencesUnresolved = "ReferencesUnresolved"

	// ReasonSecretConflict: the Secret that the claim asks for exists and does not belong to the claim.
	ReasonSecretConflict = "SecretConflict"

	// ReasonSecretNotControlled: the Secret of that name in the hub does not belong to the hub's claim, and was not
	// copied.
	ReasonSecretNotControlled = "SecretNotControlled"

	// ReasonSecretWithheld: a label on the Secret keeps it in the hub.
	ReasonSecretWithheld = "SecretWithheld"

	// ReasonSecretMissing: the hub's Secret behind the claim's connection Secret is gone. The copy is kept.
	ReasonSecretMissing = "SecretMissing"

	// ReasonSecretRejected: the workload cluster rejects the connection Secret; the message says why.
	ReasonSecretRejected = "SecretRejected"

	// ReasonWorkloadForbidden: Masthead lacks a right in the workload cluster; the message names it.
	ReasonWorkloadForbidden = "WorkloadForbidden"

	// ReasonWorkloadRejected: the workload cluster rejects changes of the claim's finalizers; the message says why.
	ReasonWorkloadRejected = "WorkloadRejected"

	// ReasonInvalidDeletionPolicy: the claim is being deleted, and its annotation agent.masthead.dev/deletion-policy is
	// invalid, or the EnrollmentClass forbids it. Nothing is deleted on a guess.
	ReasonInvalidDeletionPolicy = "InvalidDeletionPolicy"

	// ReasonDeleting: the claim is being deleted, and waits until it is gone from the hub, or for the finalizers of
	// others.
	ReasonDeleting = "Deleting"

	// ReasonHubObjectDeleted: another client deleted the claim's object in the hub. It is recreated only if the class says
	// so or the claim's owner asks for it.
	ReasonHubObjectDeleted = "HubObjectDeleted"

	// ReasonSyncFailing: synchronising the claim has failed for a while, and is retried. AgentSynced is Unknown.
	ReasonSyncFailing = "SyncFailing"

	// ReasonRecreating: the claim in the hub is being deleted although this claim is not. It is recreated afterwards.
	ReasonRecreating = "Recreating"

	// ReasonReconcilePaused: the annotation crossplane.io/paused pauses the claim, and its deletion. The word is
	// Crossplane's.
	ReasonReconcilePaused = "ReconcilePaused"
)

// ReasonAwaitingHub of the condition Reconciling of a claim: the hub matches the claim, but has not reported readiness
// yet. The other reasons of Reconciling, and those of Stalled, are those of AgentSynced.
const ReasonAwaitingHub = "AwaitingHub"

// ReasonAdopted of an event of a claim: it took over an object of the hub.
const ReasonAdopted = "Adopted"

// Reasons why the claims of a kind are not synchronised, though their definition is installed, in events and in the
// ClusterProfile's condition KindsServed.
const (
	// ReasonClaimsForbidden: the definition exists, but the cluster does not let Masthead list and watch its claims.
	ReasonClaimsForbidden = "ClaimsForbidden"

	// ReasonClaimsTooLarge: the cluster has more claims of the kind, or larger ones, than Masthead keeps. None of them is
	// synchronised until there are fewer.
	ReasonClaimsTooLarge = "ClaimsTooLarge"

	// ReasonClaimsStale: for five minutes the cluster has not answered lists of the kind's claims. Their changes are
	// not seen until it does.
	ReasonClaimsStale = "ClaimsStale"
)
