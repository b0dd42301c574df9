// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
)

// authenticate decides whose rights in the hub are used for a claim. What it returns is for every read and write there;
// if nobody's can be used, the facts say why.
//
// What was created with credentials of the claim's namespace is deleted with these, whatever the namespace says by now:
// their Role in the hub is the limit, and who owns the namespace could lift it by removing the annotation. With a
// namespace that is deleted, its Secrets go before its claims. Then, and only then, what was read from them last is
// followed by the class's identity: a namespace is deleted by whoever gives it out, and it would never end.
func (r *requirementReconciler) authenticate(ctx context.Context, s *scope.Scope) (context.Context, error) {
	switch {
	case s.IsPaused():
		return ctx, nil // Nothing is done in the hub.
	case s.Class == nil:
		// Nobody says whose rights to use. Nothing is pushed or deleted then: all that can happen is that an object is given
		// up, which can be undone (deletionPolicy).
		return r.identities.Manager.In(ctx), nil
	case s.IsDisabled(), !s.IsGoing() && s.Pairing == nil, s.IsGoing() && !s.Protected:
		return ctx, nil // Nothing is done in the hub.
	}
	access, p, err := r.identityOf(ctx, s)
	if err != nil {
		return ctx, answer.MarkUnanswered(err) // Credentials are read there.
	}
	if p != nil {
		s.Unauthenticated, s.RetryAfter = p, r.identities.RetryAfter()
		return ctx, nil
	}
	return access.In(ctx), nil
}

// identityOf returns the hub with the rights that are used for a claim.
func (r *requirementReconciler) identityOf(ctx context.Context, s *scope.Scope) (*hubaccess.Access, *condition.Problem, error) {
	going := s.IsGoing()
	if by, ok := creator(&s.Facts); going && ok {
		return r.creatorAccess(ctx, s, by)
	}
	key, given, p := hubaccess.NamespaceIdentity(s.Pairing.NamespaceAnnotations(), s.ClusterName, s.Namespace)
	if given && p == nil {
		access, problem, err := r.identities.Use(ctx, s.Workload.Reader, key)
		if access != nil {
			return access, nil, nil
		}
		if !going || err != nil {
			return nil, problem, err
		}
		if last := r.identities.Last(key); last != nil {
			return last, nil, nil
		}
	}
	if given && !going {
		return nil, p, nil
	}
	return r.classAccess(ctx, s)
}

// creator is the identity of the claim's namespace that created the claim's object, if one did and the watch shows it.
func creator(f *plan.Facts) (hubaccess.Key, bool) {
	objects := append(f.RecordedPlaces(), plan.NamedObject{Object: f.Hub.Target})
	for _, n := range objects {
		if n.Object != nil && f.Owns(n.Object) {
			return hubaccess.CreatorOf(n.Object, f.ClusterName, f.Namespace)
		}
	}
	return hubaccess.Key{}, false
}

// classAccess is the hub with the rights of the class's identity.
func (r *requirementReconciler) classAccess(ctx context.Context, s *scope.Scope) (*hubaccess.Access, *condition.Problem, error) {
	key, p := hubaccess.ClassIdentity(s.Class.Spec.Agent, s.ClusterName)
	if p != nil {
		return nil, p, nil
	}
	return r.identities.Use(ctx, s.Workload.Reader, key)
}

// creatorAccess is the hub with the rights of the identity that created the claim's object.
func (r *requirementReconciler) creatorAccess(ctx context.Context, s *scope.Scope, creator hubaccess.Key) (*hubaccess.Access, *condition.Problem, error) {
	access, p, err := r.identities.Use(ctx, s.Workload.Reader, creator)
	if access != nil || err != nil {
		return access, nil, err
	}
	if last := r.identities.Last(creator); last != nil {
		return last, nil, nil
	}
	if s.NamespaceObject == nil || s.NamespaceObject.GetDeletionTimestamp() != nil {
		return r.classAccess(ctx, s)
	}
	said := *p
	said.Message += fmt.Sprintf(" The object in the hub was created by %s, and is deleted with the same rights.", creator)
	return nil, &said, nil
}
