// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Types of the conditions of EnrollmentClasses and HealthRules.
const (
	// ConditionReady says whether Masthead uses the object as written: whether clusters can be enrolled with an
	// EnrollmentClass, and whether a HealthRule is applied. It says nothing about the clusters of a class, so a roll-out
	// in the hub never waits for a workload cluster.
	ConditionReady = "Ready"

	// ConditionStalled is True while a user must correct the object, and absent otherwise. Its reason and message are
	// those of Ready. By it, kstatus distinguishes failed from pending.
	ConditionStalled = "Stalled"

	// ConditionClustersConnected of an EnrollmentClass says whether Masthead is connected to every cluster that names the
	// class.
	ConditionClustersConnected = "ClustersConnected"
)

// Reasons of the condition Ready of an EnrollmentClass.
const (
	// ReasonAccepted: clusters can be enrolled with the class.
	ReasonAccepted = "Accepted"

	// ReasonInvalidSelector: a label selector of the class is invalid, so it selects nothing. The message says which and
	// why.
	ReasonInvalidSelector = "InvalidSelector"
)

// Reasons of the condition ClustersConnected of an EnrollmentClass.
const (
	// ReasonAllConnected: Masthead is connected to every cluster that names the class.
	ReasonAllConnected = "AllConnected"

	// ReasonNoClusters: no enrolled cluster names the class.
	ReasonNoClusters = "NoClusters"

	// ReasonClustersNotConnected: Masthead is not connected to some of the clusters that name the class. Their
	// ClusterProfiles say why.
	ReasonClustersNotConnected = "ClustersNotConnected"
)

// Reasons of the condition Ready of a HealthRule.
const (
	// ReasonCompiled: Masthead applies the rule.
	ReasonCompiled = "Compiled"

	// ReasonCannotCompile: an expression is not valid; the message says which and why. Objects of the kind are Unknown.
	ReasonCannotCompile = "CannotCompile"

	// ReasonShadowed: an older rule for the same kind is applied instead.
	ReasonShadowed = "Shadowed"
)
