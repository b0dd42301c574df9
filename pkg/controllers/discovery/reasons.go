// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"

// reasonSet are the reasons why something cannot be put into a cluster. An empty one is not a problem.
type reasonSet struct{ foreign, rejected, forbidden, tooLarge, notServed string }

var (
	definitionReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: fleetv1alpha1.ReasonDefinitionForeign, rejected: fleetv1alpha1.ReasonDefinitionRejected, forbidden: fleetv1alpha1.ReasonDefinitionForbidden,
		tooLarge: fleetv1alpha1.ReasonDefinitionRejected,
	}
	objectReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: fleetv1alpha1.ReasonObjectForeign, rejected: fleetv1alpha1.ReasonObjectRejected, forbidden: fleetv1alpha1.ReasonObjectsForbidden,
		tooLarge: fleetv1alpha1.ReasonObjectsTooLarge,
	}
	policyReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: fleetv1alpha1.ReasonPolicyForeign, rejected: fleetv1alpha1.ReasonPolicyRejected, forbidden: fleetv1alpha1.ReasonPolicyForbidden,
		tooLarge: fleetv1alpha1.ReasonPolicyRejected, notServed: fleetv1alpha1.ReasonPolicyNotServed,
	}
)
