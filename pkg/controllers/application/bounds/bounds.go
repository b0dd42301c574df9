// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"math"
	"slices"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Bounds of texts in a status, in characters, as in the API's schema.
const (
	// Message bounds the message of a status or of a condition.
	Message = 512

	// ComponentReason and ComponentMessage bound texts repeated from a component.
	ComponentReason  = 128
	ComponentMessage = 256

	// SummaryMessage bounds an Application's message on the hub.
	SummaryMessage = 128
)

// Count converts a number for a status.
func Count(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is bounded.

// HealthStates are the values of Health from best to worst.
func HealthStates() []appsv1alpha1.Health {
	return []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing,
		appsv1alpha1.HealthUnknown, appsv1alpha1.HealthMissing, appsv1alpha1.HealthDegraded,
	}
}

// HealthRank orders the values of Health from best to worst. It is negative for any other value.
func HealthRank(h appsv1alpha1.Health) int { return slices.Index(HealthStates(), h) }
