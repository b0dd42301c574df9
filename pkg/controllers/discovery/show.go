// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// mirrorAll reconciles every mirrored kind in the cluster.
func (p *pass) mirrorAll(ctx context.Context) error {
	own, waiting := p.ownCrossplane()
	if waiting {
		return nil
	}
	if own != nil {
		for _, k := range mirroredKinds() {
			if k.resource != resourceXRD {
				p.reports.forgetKind(p.w.name, k.crd())
				continue
			}
			p.reports.kind(ctx, p.cluster, k.crd(), 0, own)
		}
		return nil
	}
	var errs []error
	for _, k := range mirroredKinds() {
		err := p.mirror(ctx, k)
		errs = append(errs, err)
		if isFatal(err) {
			break
		}
	}
	return errors.Join(errs...)
}

// ownCrossplane reports whether the cluster serves CompositeResourceDefinitions that are not copies, or whether this is
// not known yet.
func (p *pass) ownCrossplane() (own *condition.Problem, waiting bool) {
	crd := resourceXRD + "." + crossplaneGroup
	v := p.views[crd]
	if !p.offer.shows(resourceXRD) || v.known && v.definition == nil {
		return nil, false
	}
	have, kind, err := p.w.see(ownedDefinitionKind, crd)
	if isUnknown(err) {
		// The cause is reported where the definition is written.
		problem, _ := p.unknownProblem(kind, definitionReasons)
		return nil, problem == nil
	}
	if err != nil || managed.GetMarks(have).IsMastheads() && !v.known {
		return nil, !v.known
	}
	if managed.GetMarks(have).IsMastheads() {
		return p.crossplaneAtWork(mirrorKind(v.kind))
	}
	return &condition.Problem{
		Reason: fleetv1alpha1.ReasonOwnCrossplane,
		Message: fmt.Sprintf("The CustomResourceDefinition %q already exists in the cluster and was not created by Masthead: "+
			"the cluster has, or had, its own Crossplane. What the hub offers is not shown there.", crd),
	}, false
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
	held, problem, err := p.ensure(ctx, ownedDefinitionKind, v.definition, definitionReasons)
	if err != nil || !held && problem == nil {
		return err
	}
	objects := 0
	if problem == nil {
		var done bool
		if objects, done, problem, err = p.mirrorObjects(ctx, k, v); err != nil || !done && problem == nil {
			return err
		}
	}
	if problem != nil {
		p.within(condition.SlowRetry())
	}
	p.reports.kind(ctx, p.cluster, k.crd(), objects, problem)
	return nil
}

// mirrorObjects makes the cluster have exactly the copies of a kind that its class offers. It returns how many are up
// to date, whether that is all that can be done now, and the first of the problems.
func (p *pass) mirrorObjects(ctx context.Context, k mirroredKind, v view) (objects int, done bool, first *condition.Problem, err error) {
	kind := mirrorKind(v.kind)
	why, waiting := p.unknownProblem(kind, objectReasons)
	if waiting {
		why, err = p.notServed(ctx, k, kind)
		return 0, why != nil, why, err
	}
	p.w.arrived(kind)
	if why != nil {
		return 0, true, why, nil
	}
	var problems []*condition.Problem
	var errs []error
	done = true
	for _, m := range v.objects {
		if !p.offer.includes(m.group) {
			continue
		}
		held, problem, err := p.ensure(ctx, kind, m.without(p.offer.excluded), objectReasons)
		if isFatal(err) {
			return 0, false, nil, err
		}
		if p.refused {
			// So are the others.
			return 0, false, nil, errors.Join(errs...)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case problem != nil && problem.Reason == objectReasons.forbidden:
			// So are the others.
			return objects, true, problem, errors.Join(errs...)
		case problem != nil:
			problems = append(problems, problem)
		case held:
			objects++
		default:
			done = false
		}
	}
	left, err := p.removeOthers(ctx, kind, v)
	if left != nil {
		problems = append(problems, left)
	}
	errs = append(errs, err)
	return objects, done, summary(problems), errors.Join(errs...)
}

// summary returns the first of some problems and mentions the others.
func summary(problems []*condition.Problem) *condition.Problem {
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return problems[0]
	}
	return &condition.Problem{
		Reason:  problems[0].Reason,
		Message: fmt.Sprintf("%s There are %d more such problems.", problems[0].Message, len(problems)-1),
	}
}

// removeOthers deletes copies of objects that the hub no longer has or the class no longer offers. It returns the first
// problem of those that must stay.
func (p *pass) removeOthers(ctx context.Context, kind kindwatch.Kind, v view) (left *condition.Problem, err error) {
	wanted := sets.New[string]()
	for _, m := range v.objects {
		if p.offer.includes(m.group) {
			wanted.Insert(m.name())
		}
	}
	have, err := p.w.watcher.List(kind)
	if err != nil {
		// The kind is not watched any more. Watching it again queues a new request.
		return nil, nil //nolint:nilerr,nilnil // See above.
	}
	var errs []error
	for _, obj := range have {
		switch finalizer := foreignFinalizer(obj); {
		case !p.owns(obj) || wanted.Has(obj.GetName()) || p.refused:
		case finalizer == "":
			errs = append(errs, p.remove(ctx, kind, obj))
		case left == nil:
			left = &condition.Problem{Reason: fleetv1alpha1.ReasonForeignObjectsLeft, Message: fmt.Sprintf(
				"%s %q is no longer shown. It is kept, because a client in the cluster uses it and has added the finalizer %q to it.",
				kind.Kind, obj.GetName(), multicluster.BoundedText(finalizer))}
		}
	}
	return left, errors.Join(errs...)
}

// isFatal reports whether an error concerns the cluster rather than one object: the API server did not answer.
func isFatal(err error) bool {
	return err != nil && !apierror.IsAnswer(err)
}
