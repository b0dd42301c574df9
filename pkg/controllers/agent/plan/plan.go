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
)

// Action is what a step does.
type Action string

const (
	// Protect adds our finalizer to the claim, and announces the step's place there.
	Protect Action = "Protect"

	// Adopt makes a consenting object of the hub the claim's.
	Adopt Action = "Adopt"

	// Push creates the claim's object, or updates it to match the claim.
	Push Action = "Push"

	// DryRunCreate dry-runs the write of the claim's object in the hub.
	DryRunCreate Action = "DryRunCreate"

	// CheckVisibility limits the reported problem to what the identity used may learn.
	CheckVisibility Action = "CheckVisibility"

	// Remove deletes or releases the claim's object, according to the step's policy.
	Remove Action = "Remove"

	// AwaitCreations ends the plan, to be retried, if an object could still be created for the claim.
	AwaitCreations Action = "AwaitCreations"

	// Release removes our finalizer and the record from the claim.
	Release Action = "Release"

	// Forget drops the in-memory state of the claim.
	Forget Action = "Forget"
)

// Step is one step of a plan. A step that fails ends the plan and reports why.
type Step struct {
	Do Action

	// At is the place in the hub, Saw the object that the plan saw there. Writes are conditional on that object in that
	// state, and those of Remove on a later one, which it reads: the watch may be behind.
	At  ownership.Place
	Saw *unstructured.Unstructured

	// Policy selects what Remove does.
	Policy fleetv1alpha1.DeletionPolicy

	// To is where the object is recreated after Remove, if it is.
	To *ownership.Place
}

// Down is what flows from the hub to the claim, regardless of the steps' result.
type Down struct {
	// Object is the claim's object in the hub, whose status is shown; nil if unknown.
	Object *unstructured.Unstructured

	// WithSecrets means that late fields and Secrets are pulled too, which needs an identity in the hub.
	WithSecrets bool
}

// Plan is how a claim is reconciled.
type Plan struct {
	Steps []Step
	Down  Down

	// SkipReport means that nothing is reported once the steps succeed. Otherwise Problem is reported; nil means none.
	// Holder holds the claim's name in the hub, if that is the problem.
	SkipReport bool
	Problem    *condition.Error
	Holder     string

	// WaitAt is the place in the hub whose changes requeue the claim.
	WaitAt *ownership.Place

	// RequeueAfter is when to requeue; RequeueSlowly requeues after condition.SlowRetry.
	RequeueAfter  time.Duration
	RequeueSlowly bool
}

// Decide computes the plan for a claim. It is a pure function: its cases are tabled in plan_test.go.
func Decide(f Facts) Plan {
	switch {
	case f.Vanished:
		return decideVanished(f)
	case f.Claim.GetDeletionTimestamp() != nil:
		return decideDeletion(f)
	case f.IsDisabled():
		return decideDisabled(f)
	case f.IsPaused():
		return Plan{Problem: paused("It is not synchronised in either direction")}
	case f.Class != nil && f.Pairing == nil:
		return Plan{SkipReport: f.Unpaired == nil, Problem: f.Unpaired, Down: Down{Object: f.Own()}}
	case f.Unauthenticated != nil:
		return Plan{Problem: f.Unauthenticated, RequeueAfter: f.RetryAfter, Down: Down{Object: f.Own()}}
	case !f.PublishedKnown:
		return Plan{SkipReport: true}
	case f.Target == nil || !f.Offered:
		// Without a class the identity is unknown, and without a published kind its fields are. No password flows once a
		// claim may not have its target: that is how an administrator withdraws a namespace.
		return Plan{Problem: f.untargetedProblem(), Down: Down{Object: f.Own(), WithSecrets: f.Class != nil && f.Published && f.Untargeted == nil}}
	case !f.Hub.Known:
		return Plan{SkipReport: f.Hub.Unknown == nil, Problem: f.Hub.Unknown, WaitAt: f.Target}
	}
	return decideTarget(f)
}

// untargetedProblem returns why the claim has no target.
func (f *Facts) untargetedProblem() *condition.Error {
	switch {
	case f.Class == nil:
		return classNotFound(f.ClassName)
	case !f.Offered:
		return kindNotOffered(f.Kind, f.HubKind)
	}
	return f.Untargeted
}

// decideDisabled leaves alone a claim whose class is Disabled.
func decideDisabled(f Facts) Plan {
	if f.Protected {
		return Plan{SkipReport: true, Steps: []Step{{Do: Release}}}
	}
	return Plan{SkipReport: true, Steps: []Step{{Do: Forget}}}
}

// decideTarget decides about a claim whose target, and the object there, are known.
func decideTarget(f Facts) Plan {
	there := f.Hub.Target
	moves := Recreates(f.Claim, f.Pairing.NamespaceAnnotations())
	taken := there != nil && !f.Owns(there) && !ownership.Adoptable(there, f.Claim, f.Source, f.Residence)
	// A taken name blocks only claims that want to move there.
	if from := f.Elsewhere(); from != nil && (!taken || !moves) {
		return decideMove(f, *from, moves)
	}
	if taken {
		return decideTaken(f)
	}
	if there == nil || there.GetDeletionTimestamp() != nil {
		if p := decideCreation(f); p != nil {
			return *p
		}
	}
	carried := Plan{Down: Down{Object: f.Own(), WithSecrets: true}}
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

// decideCreation decides about a claim without an object, or with one that is being deleted; nil if one may be created
// now.
func decideCreation(f Facts) *Plan {
	there := f.Hub.Target
	p := f.mayCreate()
	switch {
	case p != nil:
		return &Plan{Problem: p, WaitAt: f.Target, Down: Down{Object: there}}
	case there != nil:
		return &Plan{Problem: recreating(f.Kind.Kind, *f.Target), WaitAt: f.Target, Down: Down{Object: there}}
	case f.Full != nil:
		return &Plan{Problem: f.Full, RequeueSlowly: true}
	}
	return nil
}

// decideTaken decides about a claim whose name in the hub is taken.
func decideTaken(f Facts) Plan {
	there := f.Hub.Target
	p := Plan{WaitAt: f.Target, Down: Down{Object: f.Own()}, Steps: []Step{{Do: CheckVisibility, At: *f.Target, Saw: there}}}
	if f.ownership(there) == ownership.Former {
		p.Problem = namespaceRecreated(f.Kind.Kind, f.Target.Namespace, f.Name, f.Source)
		return p
	}
	p.Holder = ownership.DescribeHolder(there)
	p.Problem = conflict(f.Kind.Kind, f.Target.Namespace, f.Name, p.Holder)
	return p
}

// decideMove decides about a claim whose object in the hub is not at the target.
//
// Nothing moves silently. If a move was requested, the object is removed as for a deletion of the claim, so that it can
// be recreated at the target; that starts only if the hub would accept it there. Nothing flows from an object at a
// place that the claim does not record, and no password from a namespace that the administrator has withdrawn.
func decideMove(f Facts, from PlacedObject, moves bool) Plan {
	stays := Plan{Problem: targetChanged(from.Place, *f.Target), WaitAt: &from.Place}
	if own := f.recorded(); own != nil {
		stays.Down = Down{Object: own, WithSecrets: !f.Pairing.withdrawn(from.Place.Namespace)}
	}
	if !moves {
		return stays
	}
	policy, p := deletionPolicy(f.Class, f.ClassName, f.Claim)
	if p != nil {
		stays.Problem = p
		return stays
	}
	move := Plan{SkipReport: true, RequeueAfter: condition.Soon, WaitAt: &from.Place, Down: stays.Down}
	begun := from.Object.GetDeletionTimestamp() != nil
	if arrived := f.Hub.Target != nil && f.Owns(f.Hub.Target); !begun && !arrived {
		if f.Unresolved != nil {
			// The object would be removed and not recreated.
			stays.Problem = f.Unresolved
			return stays
		}
		if f.Full != nil {
			stays.Problem = f.Full // As above.
			return stays
		}
		move.Steps = append(move.Steps, Step{Do: DryRunCreate, At: *f.Target})
	}
	move.Steps = append(move.Steps, Step{Do: Remove, At: from.Place, Saw: from.Object, Policy: policy, To: f.Target})
	return move
}

// recreating reports that the object of a live claim is being deleted.
func recreating(kind string, at ownership.Place) *condition.Error {
	return &condition.Error{
		Reason:  fleetv1alpha1.ReasonRecreating,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub is being deleted, and will be created again.", kind, at.Name, at.Namespace),
	}
}

// mayCreate returns why no object may be created at the target; nil if it may.
func (f *Facts) mayCreate() *condition.Error {
	moves := Recreates(f.Claim, f.Pairing.NamespaceAnnotations())
	return mayCreate(f.Claim, f.Class.Spec.Agent.RecreatePolicy, moves, f.Kind.Kind, *f.Target)
}

// RefusesFreeName returns why nothing would be created for a claim if its name were free in the hub; nil if it would.
// It does not depend on what is there.
func (f *Facts) RefusesFreeName() *condition.Error {
	if p := f.mayCreate(); p != nil {
		return p
	}
	if f.Full != nil {
		return f.Full
	}
	return f.Unresolved
}
