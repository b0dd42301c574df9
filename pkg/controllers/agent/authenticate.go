// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
)

// authenticate decides which identity is used in the hub for a claim. The returned context is for every read and write
// there. If no identity is usable, the facts say why.
//
// An object created with credentials of the claim's namespace is deleted with these, regardless of what the namespace
// says now: their Role in the hub is the limit, and the namespace's owner could lift it by removing the annotation. If
// they are not usable any more, the last usable ones are used. A deleted namespace loses its Secrets before its claims.
// Then, and only then, the class's identity is used after these: namespaces are deleted by those who assign them, and
// would otherwise never terminate.
func (r *requirementReconciler) authenticate(ctx context.Context, s *downstream.Scope) (context.Context, error) {
	switch {
	case s.IsPaused():
		return ctx, nil // Nothing is done in the hub.
	case s.Class == nil:
		// No class says which identity to use. Nothing is pushed or deleted then: at most an object is released, which can be
		// undone (deletionPolicy).
		return r.identities.Manager.In(ctx), nil
	case s.IsDisabled(), !s.IsGoing() && s.Pairing == nil, s.IsGoing() && !s.Protected:
		return ctx, nil // Nothing is done in the hub.
	}
	access, err := r.getIdentity(ctx, s)
	var isProblem bool
	if s.Unauthenticated, isProblem = errors.AsType[*condition.Error](err); isProblem {
		s.RetryAfter = r.identities.RetryAfter()
		return ctx, nil
	}
	if err != nil {
		return ctx, hubaccess.MarkUnanswered(err) // Credentials are read there.
	}
	return access.In(ctx), nil
}

// getIdentity returns access to the hub with the identity used for a claim.
func (r *requirementReconciler) getIdentity(ctx context.Context, s *downstream.Scope) (*hubaccess.Access, error) {
	going := s.IsGoing()
	if by, ok := creator(&s.Facts); going && ok {
		return r.creatorAccess(ctx, s, by)
	}
	key, given, err := hubaccess.NamespaceIdentity(s.Pairing.NamespaceAnnotations(), s.ClusterName, s.Namespace)
	if given && err == nil {
		access, err := r.identities.Use(ctx, s.Workload.Reader, key)
		if _, isProblem := errors.AsType[*condition.Error](err); !isProblem || !going {
			return access, err
		}
		if last := r.identities.Last(key); last != nil {
			return last, nil
		}
	}
	if given && !going {
		return nil, err
	}
	return r.classAccess(ctx, s)
}

// creator returns the identity of the claim's namespace that created the claim's object, if any, as the watch shows it.
func creator(f *plan.Facts) (hubaccess.Key, bool) {
	for _, p := range f.Places() {
		if p.Object != nil && f.IsOwn(p.Object) {
			return hubaccess.ParseCreator(p.Object, f.ClusterName, f.Namespace)
		}
	}
	return hubaccess.Key{}, false
}

// classAccess returns access to the hub with the class's identity.
func (r *requirementReconciler) classAccess(ctx context.Context, s *downstream.Scope) (*hubaccess.Access, error) {
	key, err := hubaccess.ClassIdentity(s.Class.Spec.Agent, s.ClusterName)
	if err != nil {
		return nil, err
	}
	return r.identities.Use(ctx, s.Workload.Reader, key)
}

// creatorAccess returns access to the hub with the identity that created the claim's object.
func (r *requirementReconciler) creatorAccess(ctx context.Context, s *downstream.Scope, creator hubaccess.Key) (*hubaccess.Access, error) {
	access, err := r.identities.Use(ctx, s.Workload.Reader, creator)
	problem, isProblem := errors.AsType[*condition.Error](err)
	if !isProblem {
		return access, err
	}
	if last := r.identities.Last(creator); last != nil {
		return last, nil
	}
	if s.NamespaceObject == nil || s.NamespaceObject.GetDeletionTimestamp() != nil {
		return r.classAccess(ctx, s)
	}
	return nil, condition.NewError(problem.Reason, problem.Message+
		fmt.Sprintf(" The object in the hub was created by %s, and is deleted with the same rights.", creator))
}
