// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionReady of an EnrollmentClass says whether Masthead is connected to every cluster that names the class. That of a
// HealthRule says whether Masthead follows the rule.
const ConditionReady = "Ready"

// Reasons of the condition Ready of an EnrollmentClass.
const (
	// ReasonAllConnected: Masthead is connected to every cluster that names the class.
	ReasonAllConnected = "AllConnected"

	// ReasonNoClusters: no enrolled cluster names the class. The class is ready to be used.
	ReasonNoClusters = "NoClusters"

	// ReasonClustersNotConnected: Masthead is not connected to some of the clusters that name the class. Their
	// ClusterProfiles say why.
	ReasonClustersNotConnected = "ClustersNotConnected"
)

// Reasons of the condition Ready of a HealthRule.
const (
	// ReasonCompiled: Masthead follows the rule.
	ReasonCompiled = "Compiled"

	// ReasonCannotCompile: an expression is not valid; the message says which and why. Objects of the kind are Unknown.
	ReasonCannotCompile = "CannotCompile"

	// ReasonShadowed: there is an older rule for the same kind, which is followed instead.
	ReasonShadowed = "Shadowed"
)
