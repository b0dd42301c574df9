// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// authenticate decides whose rights in the hub are used for a claim. What it returns is for every read and write there; the
// outcome is why there is nobody.
//
// What was created with credentials of the claim's namespace is deleted with these, whatever the namespace says by now: their
// Role in the hub is the limit, and who owns the namespace could lift it by removing the annotation. With a namespace that is
// deleted, its Secrets go before its claims. Then, and only then, what was read from them last is followed by the class's
// identity: a namespace is deleted by whoever gives it out, and it would never end.
func (r *requirementReconciler) authenticate(ctx context.Context, s *scope) (context.Context, *outcome, error) {
	if s.class == nil {
		// Nobody says whose rights to use. Nothing is pushed or deleted then: all that can happen is that an object is given
		// up, which can be undone (deletionPolicy).
		return r.identities.Manager.In(ctx), nil, nil
	}
	if s.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return ctx, nil, nil // Nothing is done in the hub.
	}
	going := s.vanished || s.claim.GetDeletionTimestamp() != nil
	pairing, o, err := r.pairingOf(ctx, s)
	if err != nil || o != nil && !going {
		return ctx, o, err
	}
	s.pairing = pairing
	if going && !s.vanished && !s.workload.BearsFinalizer(s.claim) {
		return ctx, nil, nil // There is nothing to do in the hub.
	}
	access, p, err := r.identityOf(ctx, s, going)
	if err != nil {
		return ctx, nil, err
	}
	if p != nil {
		return ctx, &outcome{silent: s.vanished, problem: p, retryAfter: r.identities.RetryAfter()}, nil
	}
	return access.In(ctx), nil, nil
}

// identityOf returns the hub with the rights that are used for a claim.
func (r *requirementReconciler) identityOf(ctx context.Context, s *scope, going bool) (*hubaccess.Access, *condition.Problem, error) {
	if creator, ok := r.creator(s); going && ok {
		return r.creatorAccess(ctx, s, creator)
	}
	var annotations map[string]string
	if s.pairing != nil {
		annotations = s.pairing.annotations
	}
	key, given, p := hubaccess.NamespaceIdentity(annotations, s.ClusterName, s.Namespace)
	if given && p == nil {
		access, problem, err := r.identities.Use(ctx, s.workload.Reader, key)
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

// classAccess is the hub with the rights of the class's identity.
func (r *requirementReconciler) classAccess(ctx context.Context, s *scope) (*hubaccess.Access, *condition.Problem, error) {
	key, p := hubaccess.ClassIdentity(s.class.Spec.Agent, s.ClusterName)
	if p != nil {
		return nil, p, nil
	}
	return r.identities.Use(ctx, s.workload.Reader, key)
}

// creator is the identity of the claim's namespace that created the claim's object, if one did and the watch shows it.
func (r *requirementReconciler) creator(s *scope) (hubaccess.Key, bool) {
	places := r.recordedPlaces(s)
	if s.pairing != nil {
		if target, p := s.pairing.target(); p == nil {
			places = append(places, ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: target, Name: s.Name}})
		}
	}
	for _, place := range places {
		if obj, err := r.hub.Watcher.Get(place.Kind, place.NamespacedName); err == nil && s.owns(obj) {
			return hubaccess.CreatorOf(obj, s.ClusterName, s.Namespace)
		}
	}
	return hubaccess.Key{}, false
}

// creatorAccess is the hub with the rights of the identity that created the claim's object.
func (r *requirementReconciler) creatorAccess(ctx context.Context, s *scope, creator hubaccess.Key) (*hubaccess.Access, *condition.Problem, error) {
	access, p, err := r.identities.Use(ctx, s.workload.Reader, creator)
	if access != nil || err != nil {
		return access, nil, err
	}
	if last := r.identities.Last(creator); last != nil {
		return last, nil, nil
	}
	if s.namespace == nil || s.namespace.GetDeletionTimestamp() != nil {
		return r.classAccess(ctx, s)
	}
	said := *p
	said.Message += fmt.Sprintf(" The object in the hub was created by %s, and is deleted with the same rights.", creator)
	return nil, &said, nil
}

// disclosable is what may be told about what was seen at a place of the hub that belongs to somebody else. The watch that saw
// it is the manager's. So with another identity it is told only if that identity may read there: which names are taken in a
// namespace, and by whom, is not for everybody who can name the namespace.
//
// Without that right, the claim is told what it would be told about a name that is free, in the same words and with the same
// finalizer: the hub is asked whether it would accept it. Only who may create there learns that it cannot.
func (r *requirementReconciler) disclosable(ctx context.Context, s *scope, key ownership.Place, o outcome) (outcome, error) {
	if o.problem == nil || hubaccess.AsManager(ctx) || o.problem.Reason != reason.ReasonConflict && o.problem.Reason != reason.ReasonNamespaceRecreated {
		return o, nil
	}
	_, unreadable := r.getHub(ctx, key)
	if unreadable == nil {
		return o, nil
	}
	p := problemOf(unreadable, "get", s.Kind.GroupResource().String(), key.Namespace)
	if p == nil {
		return outcome{}, unreadable
	}
	refused, err := r.rehearse(ctx, s, key)
	if refused == nil {
		if err != nil && !apierrors.IsConflict(err) {
			return outcome{}, err
		}
		return outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
	}
	r.awaitNamespace(s, key.Namespace, refused)
	if o, err := r.finalize(ctx, s, nil); err != nil || o != nil {
		return deref(o), err
	}
	return *refused, nil
}
