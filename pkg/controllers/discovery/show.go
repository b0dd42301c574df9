// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// mirrorAll reconciles every mirrored kind in the cluster.
func (p *pass) mirrorAll(ctx context.Context) error {
	err := p.ownCrossplane()
	if own, found := errors.AsType[*condition.Error](err); found {
		for _, k := range mirroredKinds() {
			if k.resource != resourceXRD {
				p.reports.forgetKind(p.w.name, k.crd())
				continue
			}
			p.reportKind(ctx, k.crd(), 0, own)
		}
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range mirroredKinds() {
		err := p.mirror(ctx, k)
		errs = append(errs, err)
		if isFatal(err) {
			break
		}
	}
	return condition.Join(errs...)
}

// ownCrossplane returns the problem that the cluster serves CompositeResourceDefinitions that are not copies. While
// this is not known yet, it is pending.
func (p *pass) ownCrossplane() error {
	crd := resourceXRD + "." + crossplaneGroup
	v := p.views[crd]
	if !p.offer.shows(resourceXRD) || v.known && v.definition == nil {
		return nil
	}
	have, kind, err := p.w.see(ownedDefinitionKind, crd)
	if isUnknown(err) {
		if known := p.known(kind, definitionReasons); known != nil && !condition.IsPending(known) {
			// It is reported where the definition is written.
			return nil
		}
		return condition.PendingError{}
	}
	if err == nil && !install.GetMarks(have).IsMastheads() {
		return condition.NewError(fleetv1alpha1.ReasonOwnCrossplane,
			fmt.Sprintf("The CustomResourceDefinition %q already exists in the cluster and was not created by Masthead: "+
				"the cluster has, or had, its own Crossplane. What the hub offers is not shown there.", crd))
	}
	if !v.known {
		return condition.PendingError{}
	}
	if err != nil {
		return nil //nolint:nilerr // There is none, or it is reported where the definition is written.
	}
	return p.crossplaneAtWork(mirrorKind(v.kind))
}

// mirror reconciles one kind in the cluster.
func (p *pass) mirror(ctx context.Context, k mirroredKind) error {
	if !p.wanted(k) {
		return p.withdraw(ctx, k)
	}
	v := p.views[k.crd()]
	if !v.known {
		return nil
	}
	objects, err := p.show(ctx, k, v)
	var problem *condition.Error
	if errors.As(err, &problem) {
		problem.RetryAfter = condition.MinNonZero(problem.RetryAfter, condition.SlowRetry())
	}
	if err == nil || problem != nil {
		p.reportKind(ctx, k.crd(), objects, problem)
	}
	return err
}

// show makes the cluster have a kind's definition, and exactly those copies that its class offers. It returns how many
// are up to date.
func (p *pass) show(ctx context.Context, k mirroredKind, v view) (objects int, err error) {
	if err := p.ensure(ctx, ownedDefinitionKind, v.definition, definitionReasons); err != nil {
		return 0, err
	}
	kind := mirrorKind(v.kind)
	err = p.known(kind, objectReasons)
	if condition.IsPending(err) {
		return 0, p.notServed(ctx, k, kind)
	}
	p.w.awaited.Set(kind, time.Time{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, m := range v.objects {
		if !p.offer.includes(m.group) {
			continue
		}
		err := p.ensure(ctx, kind, m.without(p.offer.excluded), objectReasons)
		errs = append(errs, err)
		if p.refused {
			// So are the others.
			return objects, condition.Join(append(errs, condition.PendingError{})...)
		}
		if isFatal(err) || isForbidden(err) {
			// So are the others.
			return objects, condition.Join(errs...)
		}
		if err == nil {
			objects++
		}
	}
	return objects, condition.Join(append(errs, p.removeOthers(ctx, kind, v))...)
}

// removeOthers deletes copies of objects that the hub no longer has or the class no longer offers.
func (p *pass) removeOthers(ctx context.Context, kind kindwatch.Kind, v view) error {
	wanted := sets.New[string]()
	for _, m := range v.objects {
		if p.offer.includes(m.group) {
			wanted.Insert(m.name())
		}
	}
	have, err := p.w.watcher.List(kind)
	if err != nil {
		return nil //nolint:nilerr // The kind is not watched any more. Watching it again queues a new request.
	}
	slices.SortFunc(have, func(a, b *kindwatch.Item) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	var errs []error
	for _, item := range have {
		obj := item.Object()
		switch finalizer := foreignFinalizer(obj); {
		case !p.owns(obj) || wanted.Has(obj.GetName()) || p.refused:
		case finalizer == "":
			errs = append(errs, p.remove(ctx, kind, obj))
		default:
			errs = append(errs, condition.NewError(fleetv1alpha1.ReasonForeignObjectsLeft, fmt.Sprintf(
				"%s %q is no longer shown. It is kept, because a client in the cluster uses it and has added the finalizer %q to it.",
				kind.Kind, obj.GetName(), multicluster.BoundedText(finalizer))))
		}
	}
	return condition.Join(errs...)
}

// isForbidden reports whether an error is that copies may not be written.
func isForbidden(err error) bool {
	var problem *condition.Error
	return errors.As(err, &problem) && problem.Reason == objectReasons.Forbidden
}

// isFatal reports whether an error concerns the cluster rather than one object: the API server did not answer.
func isFatal(err error) bool {
	var problem *condition.Error
	return err != nil && !condition.IsPending(err) && !errors.As(err, &problem) && !apierror.IsAnswer(err)
}
