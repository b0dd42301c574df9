// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// action is what a step does.
type action string

const (
	// actionProtect adds our finalizer to the claim.
	actionProtect action = "Protect"

	// actionAdopt makes an object of the hub, which consents to it, the claim's.
	actionAdopt action = "Adopt"

	// actionPush creates the claim's object, or makes it what the claim says.
	actionPush action = "Push"

	// actionRehearse asks the hub whether it would accept the claim's object, and changes nothing.
	actionRehearse action = "Rehearse"

	// actionDisclose replaces what is told by what may be told to the identity that is used.
	actionDisclose action = "Disclose"

	// actionRemove deletes or releases the claim's object, as the policy of the step says.
	actionRemove action = "Remove"

	// actionRemoveNamed is actionRemove for every object that names the claim, wherever a live list finds one.
	actionRemoveNamed action = "RemoveNamed"

	// actionAwaitCreations ends the plan for now if an object could still be created for the claim.
	actionAwaitCreations action = "AwaitCreations"

	// actionRelease removes our finalizer and the record from the claim.
	actionRelease action = "Release"

	// actionForget drops what is kept about the claim.
	actionForget action = "Forget"
)

// step is a part of a plan. A step that does not come through ends the plan, and says why.
type step struct {
	do action

	// at is the place in the hub, and saw the object that the plan saw there: what is written is written to that object in that state.
	at  ownership.Place
	saw *unstructured.Unstructured

	// policy says what actionRemove does.
	policy fleetv1alpha1.DeletionPolicy

	// to is where the object will be created again after actionRemove, if it is.
	to *ownership.Place
}

// down is what flows from the hub to the claim, whatever becomes of the steps.
type down struct {
	// object is the claim's object in the hub, whose status is shown; nil if none is known.
	object *unstructured.Unstructured

	// all is whether late fields and Secrets are brought as well, for which somebody's rights in the hub are needed.
	all bool
}

// plan is what is done about a claim.
type plan struct {
	steps []step
	down  down

	// silent says that there is nothing to tell when the steps have come through; else problem is told, which is nil for none. holder is
	// who has the claim's name in the hub, if that is the problem.
	silent  bool
	problem *condition.Problem
	holder  string

	// waitAt is where in the hub a change is a reason to look again.
	waitAt *ownership.Place

	// again is when to look again, and slowly whether it is after condition.SlowRetry.
	again  time.Duration
	slowly bool
}

// decide decides what is done about a claim. It is a pure function: the table of its cases is in plan_test.go.
func decide(f facts) plan {
	switch {
	case f.vanished:
		return decideVanished(f)
	case f.claim.GetDeletionTimestamp() != nil:
		return decideDeletion(f)
	case f.isDisabled() && f.protected:
		return plan{silent: true, steps: []step{{do: actionRelease}}}
	case f.isDisabled():
		return plan{silent: true, steps: []step{{do: actionForget}}}
	case f.class != nil && f.pairing == nil:
		return plan{silent: f.unpaired == nil, problem: f.unpaired, down: down{object: f.own()}}
	case f.unauthenticated != nil:
		return plan{problem: f.unauthenticated, again: f.retryAfter, down: down{object: f.own()}}
	case !f.publishedKnown:
		return plan{silent: true}
	case f.target == nil || !f.offered:
		// Nobody says whose rights to use without a class, nor what the fields of a kind are that is not published.
		return plan{problem: f.cause(), down: down{object: f.own(), all: f.class != nil && f.published}}
	case !f.hub.known:
		return plan{silent: f.hub.unknown == nil, problem: f.hub.unknown, waitAt: f.target}
	}
	return decideTarget(f)
}

// cause is why the claim goes nowhere.
func (f *facts) cause() *condition.Problem {
	switch {
	case f.class == nil:
		return classNotFound(f.className)
	case !f.offered:
		return kindNotOffered(f.Kind)
	}
	return f.untargeted
}

// decideTarget decides about a claim of which it is known where it goes, and what is there.
func decideTarget(f facts) plan {
	there := f.hub.target
	moves := recreates(f.claim, f.pairing.namespaceAnnotations())
	taken := there != nil && !f.owns(there) && !ownership.Adoptable(there, f.claim, f.us, f.home)
	// That the name is taken is in the way of those only that want to move there.
	if from := f.elsewhere(); from != nil && !(taken && moves) {
		return decideMove(f, *from, moves)
	}
	going := there != nil && there.GetDeletionTimestamp() != nil
	switch {
	case taken:
		p := plan{waitAt: f.target, down: down{object: f.own()}, steps: []step{{do: actionDisclose, at: *f.target, saw: there}}}
		if f.ownership(there) == ownership.Former {
			p.problem = namespaceRecreated(f.Kind.Kind, f.target.Namespace, f.Name, f.us)
			return p
		}
		p.holder = ownership.HolderOf(there)
		p.problem = conflict(f.Kind.Kind, f.target.Namespace, f.Name, p.holder)
		return p
	case there == nil || going:
		if p := mayCreate(f.claim, f.class.Spec.Agent.RecreatePolicy, moves, f.Kind.Kind, *f.target); p != nil {
			return plan{problem: p, waitAt: f.target, down: down{object: there}}
		}
	}
	if going {
		return plan{problem: recreating(f.Kind.Kind, *f.target), down: down{object: there}}
	}
	carried := plan{down: down{object: f.own(), all: true}}
	if carried.problem = unresolved(f.claim); carried.problem != nil {
		return carried
	}
	carried.steps = append(carried.steps, step{do: actionProtect})
	if there != nil && !f.owns(there) {
		carried.steps = append(carried.steps, step{do: actionAdopt, at: *f.target, saw: there})
	}
	carried.steps = append(carried.steps, step{do: actionPush, at: *f.target, saw: there})
	return carried
}

// decideMove decides about a claim whose object is at another place of the hub than the one where it would be created.
//
// Nothing moves silently. If somebody has asked for it, the object is let go as for a deletion of the claim, so that it can be created
// at the other place; and that begins only if the hub would accept it there.
func decideMove(f facts, from namedObject, moves bool) plan {
	stays := plan{problem: targetChanged(from.place, *f.target), waitAt: &from.place}
	if from.object != nil && f.owns(from.object) {
		stays.down = down{object: from.object, all: true}
	}
	if !moves {
		return stays
	}
	policy, p := deletionPolicy(f.class, f.className, f.claim)
	if p != nil {
		stays.problem = p
		return stays
	}
	move := plan{silent: true, again: condition.Soon, waitAt: &from.place, down: stays.down}
	begun := from.object != nil && from.object.GetDeletionTimestamp() != nil
	if arrived := f.hub.target != nil && f.owns(f.hub.target); !begun && !arrived {
		move.steps = append(move.steps, step{do: actionRehearse, at: *f.target})
	}
	move.steps = append(move.steps, step{do: actionRemove, at: from.place, saw: from.object, policy: policy, to: f.target})
	return move
}

// decideDeletion decides about a claim that is being deleted. It is let go once it is gone from the hub.
//
// Its object is deleted, or released, as the policy says, where the claim records it and where it would be created now. Objects that
// name another source, or none, are not touched, nor are those that name the claim's and are somewhere else.
func decideDeletion(f facts) plan {
	release := step{do: actionRelease}
	switch {
	case !f.protected:
		return plan{silent: true, steps: []step{{do: actionForget}}}
	case f.isDisabled():
		return plan{silent: true, steps: []step{release}}
	case f.unauthenticated != nil:
		return plan{problem: f.unauthenticated, again: f.retryAfter, down: down{object: f.own()}}
	case !f.hub.known && f.hub.gone:
		return plan{silent: true, steps: []step{release}}
	case !f.hub.known:
		return plan{silent: f.hub.unknown == nil, problem: f.hub.unknown}
	}
	policy, p := deletionPolicy(f.class, f.className, f.claim)
	if p != nil {
		return plan{problem: p, down: down{object: f.own()}}
	}
	return plan{silent: true, steps: append(removals(f, policy), step{do: actionAwaitCreations}, release)}
}

// decideVanished decides about a claim that is gone although it had our finalizer. There is nobody to tell about it.
func decideVanished(f facts) plan {
	forget := step{do: actionForget}
	switch {
	case f.isDisabled():
		return plan{silent: true, steps: []step{forget}}
	case f.unauthenticated != nil:
		return plan{silent: true, again: f.retryAfter}
	case !f.hub.known && !f.hub.gone:
		return plan{silent: true, slowly: true}
	}
	policy, p := deletionPolicy(f.class, f.className, f.claim)
	if p != nil {
		// Nobody can correct it any more, so that what can be undone is done.
		policy = fleetv1alpha1.DeletionPolicyOrphan
	}
	return plan{silent: true, steps: append(removals(f, policy), step{do: actionAwaitCreations}, forget)}
}

// removals remove what the claim has in the hub: where the claim records it, and where the class says that it would be created. A
// claim without a record has its object wherever the watch knows one that names its source; if there is no class to say where it would
// be created either, the hub is asked for every object of that name.
func removals(f facts, policy fleetv1alpha1.DeletionPolicy) []step {
	places := f.recordedPlaces()
	if f.target != nil {
		known := false
		for _, n := range places {
			known = known || n.place == *f.target
		}
		if !known {
			places = append(places, namedObject{place: *f.target, object: f.hub.target})
		}
	}
	var steps []step
	for _, n := range places {
		steps = append(steps, step{do: actionRemove, at: n.place, saw: n.object, policy: policy})
	}
	if _, recorded := f.recordedPlace(); f.target == nil && !recorded {
		steps = append(steps, step{do: actionRemoveNamed, policy: policy})
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
