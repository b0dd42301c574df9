// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// claim distinguishes a claim whose volume is lost from one that has none yet, which kstatus does not.
func claim(c fields) (Result, bool) {
	switch phase := corev1.PersistentVolumeClaimPhase(c.text("status", "phase")); phase {
	case corev1.ClaimBound:
		return healthy(), true
	case corev1.ClaimLost:
		return degraded(appsv1alpha1.ReasonClaimLost, "The volume of the claim is lost"), true
	case corev1.ClaimPending, "":
		return progressing(appsv1alpha1.ReasonClaimPending, "The claim has no volume yet"), true
	default:
		return unknown(appsv1alpha1.ReasonUnreadable, fmt.Sprintf("The phase %q of the claim is unknown to Masthead", phase)), true
	}
}
