// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// claim distinguishes a claim whose volume is lost from one that has none yet, which kstatus does not.
func claim(c fields) (Result, bool) {
	switch phase := corev1.PersistentVolumeClaimPhase(c.text("status", "phase")); phase {
	case corev1.ClaimBound:
		return boundClaim(c), true
	case corev1.ClaimLost:
		return degraded(appsv1alpha1.ReasonClaimLost, "The volume of the claim is lost"), true
	case corev1.ClaimPending, "":
		return progressing(appsv1alpha1.ReasonClaimPending, "The claim has no volume yet"), true
	default:
		return unknown(appsv1alpha1.ReasonUnreadable, fmt.Sprintf("The phase %q of the claim is unknown to Masthead", phase)), true
	}
}

// boundClaim finds a claim that can never get what it asks for. A size or a class that takes its time changes nothing
// about a volume that works; conditions that report failures count for every kind.
func boundClaim(c fields) Result {
	infeasible := string(corev1.PersistentVolumeClaimModifyVolumeInfeasible)
	if c.text("status", "modifyVolumeStatus", "status") == infeasible {
		return degraded(infeasible, "The volume cannot have the class that the claim wants")
	}
	resizes := c.part("status", "allocatedResourceStatuses")
	for _, resource := range slices.Sorted(maps.Keys(resizes)) { // Always the same is reported.
		if status := resizes.text(resource); strings.HasSuffix(status, infeasible) {
			return degraded(status, fmt.Sprintf("The volume cannot have the %s that the claim wants", resource))
		}
	}
	return healthy()
}
