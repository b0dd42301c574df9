// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// protect makes the cluster reject changes to what Masthead put there, or removes that protection where nothing is
// wanted any more.
func (p *pass) protect(ctx context.Context) error {
	if !p.offer.protected {
		return p.unprotect(ctx)
	}
	err := p.ensurePolicy(ctx)
	var problem *condition.Error
	if errors.As(err, &problem) {
		problem.Message += " Masthead's objects in the cluster are not protected; changes of them are reverted."
		if problem.Reason != fleetv1alpha1.ReasonPolicyNotServed {
			problem.RetryAfter = condition.SlowRetry()
		}
	}
	if err == nil || problem != nil {
		p.reportProtection(ctx, problem)
	}
	return err
}

// ensurePolicy creates or updates the policy, then its binding.
func (p *pass) ensurePolicy(ctx context.Context) error {
	if err := p.known(policyKind, policyReasons); err != nil {
		return err
	}
	user, err := p.user(ctx)
	if err != nil {
		return err
	}
	p.protected = true
	if err := p.ensure(ctx, policyKind, policyFor(user), policyReasons); err != nil {
		return err
	}
	return p.ensure(ctx, bindingKind, policyBinding(), policyReasons)
}

// unprotect removes the policy, the binding first: it would be useless without the policy.
func (p *pass) unprotect(ctx context.Context) error {
	p.reports.forgetProtection(p.w.name)
	var errs []error
	for _, kind := range []kindwatch.Kind{bindingKind, policyKind} {
		have, err := p.w.watcher.Get(kind, types.NamespacedName{Name: policyName})
		state, _ := p.w.watcher.State(kind)
		switch {
		case err == nil && p.owns(have):
			errs = append(errs, p.remove(ctx, kind, have))
		case err == nil, apierrors.IsNotFound(err), state == kindwatch.StateNotServed, state == kindwatch.StateForbidden:
			p.w.setUnmanaged(kind, true)
		case !errors.Is(err, kindwatch.ErrNotSynced) && !errors.Is(err, kindwatch.ErrNotWatched):
			errs = append(errs, err)
		}
	}
	return condition.Join(errs...)
}

var selfSubjectReviews = schema.GroupVersionResource{ //nolint:gochecknoglobals // A constant.
	Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews",
}

// user returns Masthead's username in the cluster, asking for it unless it is cached.
func (p *pass) user(ctx context.Context) (string, error) {
	known, doubts := p.w.user.Name()
	if known != "" {
		return known, nil
	}
	p.userRequested = true
	ctx, cancel := context.WithTimeout(ctx, p.requestTimeout)
	defer cancel()
	review := &unstructured.Unstructured{Object: map[string]any{}}
	review.SetGroupVersionKind(selfSubjectReviews.GroupVersion().WithKind("SelfSubjectReview"))
	got, err := p.w.client.Resource(selfSubjectReviews).Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
		return "", unknownUser(err)
	}
	if err != nil {
		return "", fmt.Errorf("cannot get the username of Masthead in cluster %q: %w", p.w.name, err)
	}
	user := text(got.Object, "status", "userInfo", "username")
	if err := checkUser(user); err != nil {
		return "", unknownUser(err)
	}
	p.w.user.Learn(user, doubts, p.clock.Now())
	return user, nil
}

func unknownUser(err error) *condition.Error {
	return condition.NewError(fleetv1alpha1.ReasonUserUnknown, fmt.Sprintf("The username of Masthead in the cluster is unknown: %s.", multicluster.BoundedText(err.Error())))
}
