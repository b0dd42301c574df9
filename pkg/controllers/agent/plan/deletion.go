// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"

// decideDeletion decides about a claim that is being deleted. The claim is released once its object is gone from the
// hub.
//
// The object is deleted or released, according to the policy, at the recorded place, at the target and where it names
// the claim. Objects that name another source, or none, are not touched, nor are strays.
func decideDeletion(f Facts) Plan {
	release := Step{Do: Release}
	switch {
	case !f.Protected:
		return Plan{SkipReport: true, Steps: []Step{{Do: Forget}}}
	case f.IsDisabled():
		return Plan{SkipReport: true, Steps: []Step{release}}
	case f.IsPaused():
		return Plan{Problem: paused("It is being deleted, and nothing is deleted in the hub")}
	case f.Unauthenticated != nil:
		return Plan{Problem: f.Unauthenticated, RequeueAfter: f.RetryAfter, Down: Down{Object: f.Own()}}
	case !f.Hub.Known && f.Hub.Gone:
		return Plan{SkipReport: true, Steps: []Step{release}}
	case !f.Hub.Known:
		return Plan{SkipReport: f.Hub.Unknown == nil, Problem: f.Hub.Unknown}
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil {
		return Plan{Problem: p, Down: Down{Object: f.Own()}}
	}
	return Plan{SkipReport: true, Steps: append(removals(f, policy), Step{Do: AwaitCreations}, release)}
}

// decideVanished decides about a claim that is gone although it had our finalizer. Nothing is reported.
func decideVanished(f Facts) Plan {
	forget := Step{Do: Forget}
	switch {
	case f.IsDisabled():
		return Plan{SkipReport: true, Steps: []Step{forget}}
	case f.Unauthenticated != nil:
		return Plan{SkipReport: true, RequeueAfter: f.RetryAfter}
	case !f.Hub.Known && !f.Hub.Gone:
		return Plan{SkipReport: true, RequeueSlowly: true}
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil || isPaused(f.Claim) {
		// Its owner cannot correct or unpause it any more: do what can be undone.
		policy = fleetv1alpha1.DeletionPolicyOrphan
	}
	return Plan{SkipReport: true, Steps: append(removals(f, policy), Step{Do: AwaitCreations}, forget)}
}

// removals removes the claim's objects from the hub.
func removals(f Facts, policy fleetv1alpha1.DeletionPolicy) []Step {
	var steps []Step
	for _, p := range f.Places() {
		steps = append(steps, Step{Do: Remove, At: p.Place, Saw: p.Object, Policy: policy})
	}
	return steps
}
