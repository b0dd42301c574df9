// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Types of the conditions of a ClusterProfile, besides ControlPlaneHealthy, which the cluster inventory API defines.
const (
	// ConditionConnected reports whether Masthead has a working connection to the cluster. It is Unknown while probes
	// fail and the cluster is not considered lost yet.
	ConditionConnected = "Connected"

	// ConditionKindsServed reports whether the cluster serves every kind that Masthead needs to watch there, and accepted
	// every definition that Masthead put there.
	ConditionKindsServed = "KindsServed"

	// ConditionKindsSynced reports whether the objects of every kind that Masthead watches in the cluster are synced. When
	// it is False, some have been unsynced for two minutes, or their lists or watches keep failing: its reason is their
	// common cause, see the causes in pkg/kindwatch, or KindsNotSynced, and the message names them. A kind that the
	// cluster does not serve, or does not let Masthead list, does not make it False.
	ConditionKindsSynced = "KindsSynced"

	// ConditionWithinLimits reports whether what the cluster sends, and what Masthead keeps of it, is within the limits.
	// When it is False, its reason is AnswerRefused, MemoryShareExceeded or EventsDelayed. With the first
	// two the affected kinds are unknown, and are requested again with back-off. Everything else continues.
	ConditionWithinLimits = "WithinLimits"
)

// Reasons of the conditions ControlPlaneHealthy, KindsServed, KindsSynced and WithinLimits of a ClusterProfile.
const (
	// ReasonHealthy: the API server reports that it is ready.
	ReasonHealthy = "Healthy"

	// ReasonUnhealthy: the API server answers, and reports that it is not ready.
	ReasonUnhealthy = "Unhealthy"

	// ReasonNotProbed: there is a connection whose health has not been probed yet.
	ReasonNotProbed = "NotProbed"

	// ReasonNotConnected: unknown, because there is no working connection; the condition Connected says why.
	ReasonNotConnected = "NotConnected"

	// ReasonWithinLimits: no answer of the cluster was refused lately.
	ReasonWithinLimits = "WithinLimits"

	// ReasonAllServed: the cluster serves every kind that Masthead needs to watch there.
	ReasonAllServed = "AllServed"

	// ReasonAllSynced: no kind's objects have been unsynced for long.
	ReasonAllSynced = "AllSynced"

	// ReasonKindsNotSynced: the objects of some kinds are not synced, for several causes; the message names kinds and
	// causes.
	ReasonKindsNotSynced = "KindsNotSynced"

	// ReasonDefinitionsRefused: the definitions of some kinds could not be put into the cluster; the message names them,
	// each with the reason that the agent gives.
	ReasonDefinitionsRefused = "DefinitionsRefused"
)

// Reasons of events.
const (
	// EventClusterProfileConflict on an enrolled object: the name of its ClusterProfile is taken by another cluster
	// manager.
	EventClusterProfileConflict = "ClusterProfileConflict"

	// EventClusterProfileReleased on an enrolled object: the name of its ClusterProfile is free again.
	EventClusterProfileReleased = "ClusterProfileReleased"
)
