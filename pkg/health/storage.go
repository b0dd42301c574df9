// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// claim distinguishes a claim whose volume is lost from one that has none yet, which kstatus does not.
func claim(c fields) (Result, bool) {
	switch phase := corev1.PersistentVolumeClaimPhase(c.text("status", "phase")); phase {
	case corev1.ClaimBound:
		return healthy(), true
	case corev1.ClaimLost:
		return degraded(ReasonClaimLost, "The volume of the claim is lost"), true
	case corev1.ClaimPending, "":
		return progressing(ReasonClaimPending, "The claim has no volume yet"), true
	default:
		return unknown(ReasonUnreadable, fmt.Sprintf("The phase %q of the claim is unknown to Masthead", phase)), true
	}
}
