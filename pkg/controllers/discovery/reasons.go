// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

// Reasons for which users of a workload cluster do not see something, in events and in the ClusterProfile's condition
// KindsServed.
const (
	// ReasonOwnCrossplane: the cluster has a Crossplane of its own, whose definitions and compositions are not the hub's,
	// or which works with copies. Nothing is mirrored there, and what is there stays.
	ReasonOwnCrossplane = "OwnCrossplane"

	// ReasonDefinitionForeign: the cluster has a definition of that name which Masthead did not put there.
	ReasonDefinitionForeign = "ForeignDefinition"

	// ReasonDefinitionRejected: the cluster's API server refused the definition; the message says why.
	ReasonDefinitionRejected = "DefinitionRejected"

	// ReasonDefinitionForbidden: the cluster refused the definition with 403: a right is missing, or an admission policy
	// forbids it.
	ReasonDefinitionForbidden = "DefinitionForbidden"

	// ReasonDefinitionNotServed: the cluster took the definition and does not serve it, for example because its names
	// belong to another one; the message says what its API server says.
	ReasonDefinitionNotServed = "DefinitionNotServed"

	// ReasonObjectForeign: an object of that name is in the cluster already and was not put there by Masthead.
	ReasonObjectForeign = "ForeignObject"

	// ReasonObjectRejected: the cluster's API server refused an object; the message says why.
	ReasonObjectRejected = "ObjectRejected"

	// ReasonObjectsForbidden: Masthead may not list, watch or write objects of the kind in the cluster.
	ReasonObjectsForbidden = "ObjectsForbidden"

	// ReasonObjectsTooLarge: the cluster has more objects of the kind, or larger ones, than Masthead keeps.
	ReasonObjectsTooLarge = "ObjectsTooLarge"

	// ReasonForeignObjectsLeft: a definition or a copy is not wanted any more, and stays because of somebody else: the
	// cluster has objects of the kind which are not Masthead's, or copies that bear others' finalizers.
	ReasonForeignObjectsLeft = "ForeignObjectsLeft"
)

// Reasons for which what Masthead put into a workload cluster is not protected there, in events.
const (
	// ReasonPolicyNotServed: the cluster does not serve ValidatingAdmissionPolicies: it is older than Kubernetes v1.30, or
	// they are switched off.
	ReasonPolicyNotServed = "PolicyNotServed"

	// ReasonPolicyForbidden: Masthead may not list, watch or write the policy.
	ReasonPolicyForbidden = "PolicyForbidden"

	// ReasonPolicyForeign: a policy of that name is in the cluster already and was not put there by Masthead.
	ReasonPolicyForeign = "ForeignPolicy"

	// ReasonPolicyRejected: the cluster's API server refused the policy; the message says why.
	ReasonPolicyRejected = "PolicyRejected"

	// ReasonUserUnknown: the cluster does not say as which user it knows Masthead, so that the policy could not let
	// Masthead through.
	ReasonUserUnknown = "UserUnknown"
)

// reasonSet are the reasons for which something cannot be put into a cluster. An empty one is not a problem.
type reasonSet struct{ foreign, rejected, forbidden, tooLarge, notServed string }

var (
	definitionReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonDefinitionForeign, rejected: ReasonDefinitionRejected, forbidden: ReasonDefinitionForbidden,
		tooLarge: ReasonDefinitionRejected,
	}
	objectReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonObjectForeign, rejected: ReasonObjectRejected, forbidden: ReasonObjectsForbidden,
		tooLarge: ReasonObjectsTooLarge,
	}
	policyReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonPolicyForeign, rejected: ReasonPolicyRejected, forbidden: ReasonPolicyForbidden,
		tooLarge: ReasonPolicyRejected, notServed: ReasonPolicyNotServed,
	}
)
