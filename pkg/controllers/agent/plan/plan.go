// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// Action is what a step does.
type Action string

const (
	// Protect adds our finalizer to the claim, and has it announce the place of the step.
	Protect Action = "Protect"

	// Adopt makes an object of the hub, which consents to it, the claim's.
	Adopt Action = "Adopt"

	// Push creates the claim's object, or makes it what the claim says.
	Push Action = "Push"

	// Rehearse asks the hub whether it would accept the claim's object, and changes nothing.
	Rehearse Action = "Rehearse"

	// Disclose replaces what is told by what may be told to the identity that is used.
	Disclose Action = "Disclose"

	// Remove deletes or releases the claim's object, as the policy of the step says.
	Remove Action = "Remove"

	// RemoveNamed is Remove for every object that names the claim, wherever a live list finds one.
	RemoveNamed Action = "RemoveNamed"

	// AwaitCreations ends the plan, to be made again, if an object could still be created for the claim.
	AwaitCreations Action = "AwaitCreations"

	// Release removes our finalizer and the record from the claim.
	Release Action = "Release"

	// Forget drops what is kept about the claim.
	Forget Action = "Forget"
)

// Step is a part of a plan. A step that does not come through ends the plan, and says why.
type Step struct {
	Do Action

	// At is the place in the hub, and saw the object that the plan saw there: what is written is written to that object in
	// that state.
	At  ownership.Place
	Saw *unstructured.Unstructured

	// Policy says what Remove does.
	Policy fleetv1alpha1.DeletionPolicy

	// To is where the object will be created again after Remove, if it is.
	To *ownership.Place
}

// Down is what flows from the hub to the claim, whatever becomes of the steps.
type Down struct {
	// Object is the claim's object in the hub, whose status is shown; nil if none is known.
	Object *unstructured.Unstructured

	// All is whether late fields and Secrets are brought as well, for which somebody's rights in the hub are needed.
	All bool
}

// Plan is what is done about a claim.
type Plan struct {
	Steps []Step
	Down  Down

	// Silent says that there is nothing to tell when the steps have come through; else problem is told, which is nil for
	// none. holder is who has the claim's name in the hub, if that is the problem.
	Silent  bool
	Problem *condition.Problem
	Holder  string

	// WaitAt is where in the hub a change is a reason to look again.
	WaitAt *ownership.Place

	// Again is when to look again, and slowly whether it is after condition.SlowRetry.
	Again  time.Duration
	Slowly bool
}

// Decide decides what is done about a claim. It is a pure function: the table of its cases is in plan_test.go.
func Decide(f Facts) Plan {
	switch {
	case f.Vanished:
		return decideVanished(f)
	case f.Claim.GetDeletionTimestamp() != nil:
		return decideDeletion(f)
	case f.IsDisabled():
		return decideDisabled(f)
	case f.IsPaused():
		return Plan{Problem: paused("Nothing is carried to the hub or back")}
	case f.Class != nil && f.Pairing == nil:
		return Plan{Silent: f.Unpaired == nil, Problem: f.Unpaired, Down: Down{Object: f.Own()}}
	case f.Unauthenticated != nil:
		return Plan{Problem: f.Unauthenticated, Again: f.RetryAfter, Down: Down{Object: f.Own()}}
	case !f.PublishedKnown:
		return Plan{Silent: true}
	case f.Target == nil || !f.Offered:
		// Nobody says whose rights to use without a class, nor what the fields of a kind are that is not published. No
		// password flows once a claim may not have its target: it is how an administrator takes a namespace away from it.
		return Plan{Problem: f.cause(), Down: Down{Object: f.Own(), All: f.Class != nil && f.Published && f.Untargeted == nil}}
	case !f.Hub.Known:
		return Plan{Silent: f.Hub.Unknown == nil, Problem: f.Hub.Unknown, WaitAt: f.Target}
	}
	return decideTarget(f)
}

// cause is why the claim goes nowhere.
func (f *Facts) cause() *condition.Problem {
	switch {
	case f.Class == nil:
		return classNotFound(f.ClassName)
	case !f.Offered:
		return kindNotOffered(f.Kind)
	}
	return f.Untargeted
}

// decideDisabled lets a claim be whose class is Disabled.
func decideDisabled(f Facts) Plan {
	if f.Protected {
		return Plan{Silent: true, Steps: []Step{{Do: Release}}}
	}
	return Plan{Silent: true, Steps: []Step{{Do: Forget}}}
}

// decideTarget decides about a claim of which it is known where it goes, and what is there.
func decideTarget(f Facts) Plan {
	there := f.Hub.Target
	moves := Recreates(f.Claim, f.Pairing.NamespaceAnnotations())
	taken := there != nil && !f.Owns(there) && !ownership.Adoptable(there, f.Claim, f.Us, f.Home)
	// That the name is taken is in the way of those only that want to move there.
	if from := f.Elsewhere(); from != nil && (!taken || !moves) {
		return decideMove(f, *from, moves)
	}
	if taken {
		return decideTaken(f)
	}
	going := there != nil && there.GetDeletionTimestamp() != nil
	if there == nil || going {
		if p := f.mayCreate(); p != nil {
			return Plan{Problem: p, WaitAt: f.Target, Down: Down{Object: there}}
		}
	}
	if going {
		return Plan{Problem: recreating(f.Kind.Kind, *f.Target), Down: Down{Object: there}}
	}
	carried := Plan{Down: Down{Object: f.Own(), All: true}}
	if carried.Problem = f.Unresolved; carried.Problem != nil {
		return carried
	}
	carried.Steps = append(carried.Steps, Step{Do: Protect, At: *f.Target})
	if there != nil && !f.Owns(there) {
		carried.Steps = append(carried.Steps, Step{Do: Adopt, At: *f.Target, Saw: there})
	}
	carried.Steps = append(carried.Steps, Step{Do: Push, At: *f.Target, Saw: there})
	return carried
}

// decideTaken decides about a claim whose name in the hub is another's.
func decideTaken(f Facts) Plan {
	there := f.Hub.Target
	p := Plan{WaitAt: f.Target, Down: Down{Object: f.Own()}, Steps: []Step{{Do: Disclose, At: *f.Target, Saw: there}}}
	if f.ownership(there) == ownership.Former {
		p.Problem = namespaceRecreated(f.Kind.Kind, f.Target.Namespace, f.Name, f.Us)
		return p
	}
	p.Holder = ownership.HolderOf(there)
	p.Problem = conflict(f.Kind.Kind, f.Target.Namespace, f.Name, p.Holder)
	return p
}

// decideMove decides about a claim whose object is at another place of the hub than the one where it would be created.
//
// Nothing moves silently. If somebody has asked for it, the object is let go as for a deletion of the claim, so that it
// can be created at the other place; and that begins only if the hub would accept it there. No password flows from a
// namespace that the administrator has taken away.
func decideMove(f Facts, from NamedObject, moves bool) Plan {
	stays := Plan{Problem: targetChanged(from.Place, *f.Target), WaitAt: &from.Place}
	if from.Object != nil && f.Owns(from.Object) {
		stays.Down = Down{Object: from.Object, All: !f.Pairing.withdrawn(from.Place.Namespace)}
	}
	if !moves {
		return stays
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil {
		stays.Problem = p
		return stays
	}
	move := Plan{Silent: true, Again: condition.Soon, WaitAt: &from.Place, Down: stays.Down}
	begun := from.Object != nil && from.Object.GetDeletionTimestamp() != nil
	if arrived := f.Hub.Target != nil && f.Owns(f.Hub.Target); !begun && !arrived {
		if f.Unresolved != nil {
			// It would be let go, and not be created again.
			stays.Problem = f.Unresolved
			return stays
		}
		move.Steps = append(move.Steps, Step{Do: Rehearse, At: *f.Target})
	}
	move.Steps = append(move.Steps, Step{Do: Remove, At: from.Place, Saw: from.Object, Policy: policy, To: f.Target})
	return move
}

// decideDeletion decides about a claim that is being deleted. It is let go once it is gone from the hub.
//
// Its object is deleted, or released, as the policy says, where the claim records it and where it would be created now.
// Objects that name another source, or none, are not touched, nor are those that name the claim's and are somewhere
// else.
func decideDeletion(f Facts) Plan {
	release := Step{Do: Release}
	switch {
	case !f.Protected:
		return Plan{Silent: true, Steps: []Step{{Do: Forget}}}
	case f.IsDisabled():
		return Plan{Silent: true, Steps: []Step{release}}
	case f.IsPaused():
		return Plan{Problem: paused("It is being deleted, and nothing is deleted in the hub")}
	case f.Unauthenticated != nil:
		return Plan{Problem: f.Unauthenticated, Again: f.RetryAfter, Down: Down{Object: f.Own()}}
	case !f.Hub.Known && f.Hub.Gone:
		return Plan{Silent: true, Steps: []Step{release}}
	case !f.Hub.Known:
		return Plan{Silent: f.Hub.Unknown == nil, Problem: f.Hub.Unknown}
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil {
		return Plan{Problem: p, Down: Down{Object: f.Own()}}
	}
	return Plan{Silent: true, Steps: append(removals(f, policy), Step{Do: AwaitCreations}, release)}
}

// decideVanished decides about a claim that is gone although it had our finalizer. There is nobody to tell about it.
func decideVanished(f Facts) Plan {
	forget := Step{Do: Forget}
	switch {
	case f.IsDisabled():
		return Plan{Silent: true, Steps: []Step{forget}}
	case f.Unauthenticated != nil:
		return Plan{Silent: true, Again: f.RetryAfter}
	case !f.Hub.Known && !f.Hub.Gone:
		return Plan{Silent: true, Slowly: true}
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil || isPaused(f.Claim) {
		// Nobody can correct or unpause it any more, so that what can be undone is done.
		policy = fleetv1alpha1.DeletionPolicyOrphan
	}
	return Plan{Silent: true, Steps: append(removals(f, policy), Step{Do: AwaitCreations}, forget)}
}

// removals remove what the claim has in the hub: where the claim records it, and where the class says that it would be
// created. A claim without a record has its object wherever the watch knows one that names its source; if there is no
// class to say where it would be created either, the hub is asked for every object of that name.
func removals(f Facts, policy fleetv1alpha1.DeletionPolicy) []Step {
	places := f.RecordedPlaces()
	if f.Target != nil {
		known := false
		for _, n := range places {
			known = known || n.Place == *f.Target
		}
		if !known {
			places = append(places, NamedObject{Place: *f.Target, Object: f.Hub.Target})
		}
	}
	var steps []Step
	for _, n := range places {
		steps = append(steps, Step{Do: Remove, At: n.Place, Saw: n.Object, Policy: policy})
	}
	if _, recorded := f.RecordedPlace(); f.Target == nil && !recorded {
		steps = append(steps, Step{Do: RemoveNamed, Policy: policy})
	}
	return steps
}

// recreating is why a claim waits whose object is being deleted although the claim is not.
func recreating(kind string, at ownership.Place) *condition.Problem {
	return &condition.Problem{
		Reason:  reason.ReasonRecreating,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub is being deleted, and will be created again.", kind, at.Name, at.Namespace),
	}
}

// mayCreate is whether an object may be created at the target, or why not.
func (f *Facts) mayCreate() *condition.Problem {
	moves := Recreates(f.Claim, f.Pairing.NamespaceAnnotations())
	return mayCreate(f.Claim, f.Class.Spec.Agent.RecreatePolicy, moves, f.Kind.Kind, *f.Target)
}

// RefusesFreeName is why nothing would be created for a claim if its name were free in the hub; nil if it would. It
// needs no look at what is there.
func (f *Facts) RefusesFreeName() *condition.Problem {
	if p := f.mayCreate(); p != nil {
		return p
	}
	return f.Unresolved
}
