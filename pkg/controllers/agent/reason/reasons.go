// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

// ConditionAgentSynced is the condition that Masthead adds to a claim in a workload cluster, beside those of Crossplane
// that it brings from the hub. It is True when the hub holds what the claim says and the claim shows what the hub says.
// What it means for tools that do not know it is said by the conditions Stalled and Reconciling.
const ConditionAgentSynced = "AgentSynced"

// Reasons of the condition AgentSynced.
const (
	// ReasonSynced: the hub holds what the claim says.
	ReasonSynced = "Synced"

	// ReasonConflict: the name is taken in the hub by a claim of another source, or by one that was made in the hub.
	ReasonConflict = "Conflict"

	// ReasonNamespaceRecreated: the object of that name in the hub belongs to an earlier namespace of the same name.
	ReasonNamespaceRecreated = "NamespaceRecreated"

	// ReasonTargetNamespaceMissing: the namespace in the hub to which the claim goes does not exist or is being deleted.
	ReasonTargetNamespaceMissing = "TargetNamespaceMissing"

	// ReasonTargetNamespaceNotAllowed: the namespace in the hub to which the claim would go is reserved for the hub, or
	// not one that the EnrollmentClass allows to be chosen.
	ReasonTargetNamespaceNotAllowed = "TargetNamespaceNotAllowed"

	// ReasonTargetNamespaceInvalid: the annotation of the claim's namespace that names the target is not a namespace's
	// name.
	ReasonTargetNamespaceInvalid = "TargetNamespaceInvalid"

	// ReasonTargetNamespaceChanged: the claim is in another namespace of the hub than the one to which it would go now.
	// It stays there, and is not synchronised, until it is deleted, the namespace is changed back, or it is asked to move.
	ReasonTargetNamespaceChanged = "TargetNamespaceChanged"

	// ReasonMoving: the claim in the hub is being deleted in one namespace, and will be created again in another.
	ReasonMoving = "Moving"

	// ReasonCredentialsMissing: there is no Secret with credentials for the hub where one is named.
	ReasonCredentialsMissing = "CredentialsMissing"

	// ReasonCredentialsInvalid: that Secret holds no credentials that are used, or more than credentials; the message says
	// what is wrong with it.
	ReasonCredentialsInvalid = "CredentialsInvalid"

	// ReasonCredentialsRejected: the hub does not accept the credentials in that Secret.
	ReasonCredentialsRejected = "CredentialsRejected"

	// ReasonImpersonationForbidden: Masthead may not act as the ServiceAccount that the EnrollmentClass names.
	ReasonImpersonationForbidden = "ImpersonationForbidden"

	// ReasonForbidden: Masthead, or the identity that it uses, lacks a right in the hub; the message names it.
	ReasonForbidden = "Forbidden"

	// ReasonRejected: the hub refused the claim's content; the message says why.
	ReasonRejected = "Rejected"

	// ReasonHubUnavailable: the hub could not take the claim, as when one of its webhooks is down. The condition is
	// Unknown.
	ReasonHubUnavailable = "HubUnavailable"

	// ReasonClassNotFound: the EnrollmentClass that the cluster names does not exist.
	ReasonClassNotFound = "ClassNotFound"

	// ReasonInvalidClass: the EnrollmentClass that the cluster names does not say where claims go.
	ReasonInvalidClass = "InvalidClass"

	// ReasonKindNotOffered: the hub does not publish the claim's kind any more, or the class does not offer it.
	ReasonKindNotOffered = "KindNotOffered"

	// ReasonKindNotServed: the hub does not serve the claim's kind now.
	ReasonKindNotServed = "KindNotServed"

	// ReasonReferencesUnresolved: a field that one of the claim's references fills has no value yet.
	ReasonReferencesUnresolved = "ReferencesUnresolved"

	// ReasonSecretConflict: the Secret that the claim asks for exists and does not belong to the claim.
	ReasonSecretConflict = "SecretConflict"

	// ReasonSecretNotControlled: the Secret of that name in the hub does not belong to the hub's claim, and was not
	// copied.
	ReasonSecretNotControlled = "SecretNotControlled"

	// ReasonSecretWithheld: the Secret in the hub bears a label that keeps it there.
	ReasonSecretWithheld = "SecretWithheld"

	// ReasonSecretMissing: the Secret in the hub of which the claim's connection Secret is a copy is gone. The copy is
	// kept.
	ReasonSecretMissing = "SecretMissing"

	// ReasonSecretRejected: the workload cluster does not take the connection Secret; the message says why.
	ReasonSecretRejected = "SecretRejected"

	// ReasonWorkloadForbidden: Masthead lacks a right in the workload cluster; the message names it.
	ReasonWorkloadForbidden = "WorkloadForbidden"

	// ReasonWorkloadRejected: the workload cluster refuses to have the claim's finalizers changed; the message says why.
	ReasonWorkloadRejected = "WorkloadRejected"

	// ReasonInvalidDeletionPolicy: the claim is being deleted, and its annotation agent.masthead.dev/deletion-policy has a
	// value that means nothing. Nothing is deleted on a guess.
	ReasonInvalidDeletionPolicy = "InvalidDeletionPolicy"

	// ReasonDeleting: the claim is being deleted, and waits until it is gone from the hub.
	ReasonDeleting = "Deleting"

	// ReasonHubObjectDeleted: somebody else deleted the claim's object in the hub. Another one is created only if the
	// class says so or the claim's owner asks for it.
	ReasonHubObjectDeleted = "HubObjectDeleted"

	// ReasonSyncFailing: synchronising the claim has failed for a while and is tried again, so that it is not known
	// whether the hub holds what the claim says. AgentSynced is Unknown then.
	ReasonSyncFailing = "SyncFailing"

	// ReasonRecreating: the claim in the hub is being deleted although this claim is not. It is created again afterwards.
	ReasonRecreating = "Recreating"

	// ReasonReconcilePaused: the annotation crossplane.io/paused pauses the claim, and its deletion. The word is
	// Crossplane's.
	ReasonReconcilePaused = "ReconcilePaused"
)

// ReasonAwaitingHub of the condition Reconciling: the hub holds what the claim says, and has not reported yet whether
// that is ready. The other reasons of Reconciling, and those of Stalled, are those of AgentSynced.
const ReasonAwaitingHub = "AwaitingHub"

// ReasonAdopted is the reason of the event on a claim that took over an object of the hub.
const ReasonAdopted = "Adopted"

// Reasons why the definition of a claim kind is not put into a workload cluster.
const (
	// ReasonDefinitionForeign: the cluster has a CustomResourceDefinition of that name which is not Masthead's.
	ReasonDefinitionForeign = "ForeignDefinition"

	// ReasonDefinitionRejected: the cluster refused the CustomResourceDefinition.
	ReasonDefinitionRejected = "DefinitionRejected"

	// ReasonDefinitionForbidden: the cluster does not let Masthead write CustomResourceDefinitions.
	ReasonDefinitionForbidden = "DefinitionForbidden"

	// ReasonDefinitionConversion: the version in which requirements travel has changed in the hub, and the cluster has
	// objects of another one, which only the hub's conversion webhook could convert. None of them is synchronised.
	ReasonDefinitionConversion = "ConversionNeeded"

	// ReasonDefinitionNotServed: the definition is there, and the cluster does not serve its kind, as when another
	// definition has its names; the message says why.
	ReasonDefinitionNotServed = "DefinitionNotServed"

	// ReasonClaimsForbidden: the definition is there, and the cluster does not let Masthead list and watch its claims.
	ReasonClaimsForbidden = "ClaimsForbidden"

	// ReasonClaimsTooLarge: the cluster has more claims of the kind, or larger ones, than Masthead keeps. None of them is
	// synchronised until there are fewer.
	ReasonClaimsTooLarge = "ClaimsTooLarge"

	// ReasonClaimsStale: for some minutes the cluster has not answered which claims of the kind there are. Nothing that
	// happens to them is seen until it does.
	ReasonClaimsStale = "ClaimsStale"
)
