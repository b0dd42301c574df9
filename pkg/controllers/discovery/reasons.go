// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/install"
)

// reasonSet are the reasons why something cannot be put into a cluster. An empty one is not a problem.
type reasonSet struct {
	install.Reasons
	foreign, tooLarge, notServed string
}

var (
	definitionReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.DefinitionReasons, foreign: fleetv1alpha1.ReasonDefinitionForeign, tooLarge: fleetv1alpha1.ReasonDefinitionRejected,
	}
	objectReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.Reasons{Forbidden: fleetv1alpha1.ReasonObjectsForbidden, Rejected: fleetv1alpha1.ReasonObjectRejected},
		foreign: fleetv1alpha1.ReasonObjectForeign, tooLarge: fleetv1alpha1.ReasonObjectsTooLarge,
	}
	policyReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.Reasons{Forbidden: fleetv1alpha1.ReasonPolicyForbidden, Rejected: fleetv1alpha1.ReasonPolicyRejected},
		foreign: fleetv1alpha1.ReasonPolicyForeign, tooLarge: fleetv1alpha1.ReasonPolicyRejected, notServed: fleetv1alpha1.ReasonPolicyNotServed,
	}
)
