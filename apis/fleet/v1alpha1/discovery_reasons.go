// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons why users of a workload cluster do not see something, in events and in the ClusterProfile's condition
// KindsServed, beside those of definitions.
const (
	// ReasonOwnCrossplane: the cluster has its own Crossplane, whose definitions and compositions are not the hub's, or
	// which uses copies. Nothing is mirrored there, and existing objects stay.
	ReasonOwnCrossplane = "OwnCrossplane"

	// ReasonObjectForeign: an object of that name already exists in the cluster and was not created by Masthead.
	ReasonObjectForeign = "ForeignObject"

	// ReasonObjectRejected: the cluster's API server refused an object; the message says why.
	ReasonObjectRejected = "ObjectRejected"

	// ReasonObjectsForbidden: Masthead may not list, watch or write objects of the kind in the cluster.
	ReasonObjectsForbidden = "ObjectsForbidden"

	// ReasonObjectsTooLarge: the cluster has more objects of the kind, or larger ones, than Masthead keeps.
	ReasonObjectsTooLarge = "ObjectsTooLarge"

	// ReasonForeignObjectsLeft: a definition or a copy is no longer wanted but must stay: the cluster has objects of the
	// kind that are not Masthead's, or copies with foreign finalizers.
	ReasonForeignObjectsLeft = "ForeignObjectsLeft"
)

// Reasons why what Masthead put into a workload cluster is not protected there, in events.
const (
	// ReasonPolicyNotServed: the cluster does not serve ValidatingAdmissionPolicies: it is older than Kubernetes v1.30, or
	// they are disabled.
	ReasonPolicyNotServed = "PolicyNotServed"

	// ReasonPolicyForbidden: Masthead may not list, watch or write the policy.
	ReasonPolicyForbidden = "PolicyForbidden"

	// ReasonPolicyForeign: a policy of that name already exists in the cluster and was not created by Masthead.
	ReasonPolicyForeign = "ForeignPolicy"

	// ReasonPolicyRejected: the cluster's API server refused the policy; the message says why.
	ReasonPolicyRejected = "PolicyRejected"

	// ReasonUserUnknown: the cluster does not report Masthead's username, so the policy could not exempt Masthead.
	ReasonUserUnknown = "UserUnknown"
)
