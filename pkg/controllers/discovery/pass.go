// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// pass is one look at one workload cluster.
type pass struct {
	*reconciler
	w       *workload
	cluster connection.Cluster
	offer   offer
	views   map[string]view

	// writes counts, so that a cluster with much to write gives others their turn.
	writes int

	// asked is whether the cluster was asked in this pass who Masthead is.
	asked bool

	// refused is whether our own policy may have refused something in this pass.
	refused bool

	// protected is whether a policy of ours is in force, as far as is known, or is about to be.
	protected bool

	// kept are the definitions that are not wanted and have to stay.
	kept sets.Set[string]

	// otherCrossplane is what was found of a Crossplane of the cluster's own that works with what Masthead put there, when
	// the definition of CompositeResourceDefinitions was to be removed.
	otherCrossplane findings

	// again is when the cluster is to be looked at again, if it is.
	again time.Duration
}

func (r *reconciler) newPass(w *workload, cluster connection.Cluster, o offer) *pass {
	p := &pass{reconciler: r, w: w, cluster: cluster, offer: o, views: map[string]view{}, kept: sets.New[string]()}
	for _, k := range mirroredKinds() {
		p.views[k.crd()] = r.hub.view(k.crd())
	}
	return p
}

// owns is whether an object in the cluster was put there by the Masthead of this hub, or of one that it took over from.
func (p *pass) owns(obj *unstructured.Unstructured) bool { return p.cluster.Hub.IsManaged(obj) }

// within has the cluster looked at again, at the latest after that time.
func (p *pass) within(d time.Duration) {
	if p.again == 0 || d < p.again {
		p.again = d
	}
}

// result ends the pass.
func (p *pass) result() reconcile.Result {
	p.watch()
	return reconcile.Result{RequeueAfter: p.again}
}

// wanted is whether the cluster shall show a kind, going by what is known.
func (p *pass) wanted(k mirroredKind) bool {
	v := p.views[k.crd()]
	return p.offer.shows(k.resource) && (!v.known || v.definition != nil)
}

// watch follows in the cluster what Masthead wants there and what it may have left there, and nothing else.
func (p *pass) watch() {
	var kinds []kindwatch.Kind
	follow := func(kind kindwatch.Kind, wanted bool) {
		if wanted {
			p.w.setBare(kind, false)
		}
		if wanted || !p.w.isBare(kind) {
			kinds = append(kinds, kind)
		}
	}
	follow(policyKind, p.offer.protected)
	follow(bindingKind, p.offer.protected)
	kinds = append(kinds, ownedDefinitionKind)
	for _, k := range mirroredKinds() {
		wanted := p.wanted(k)
		_, shownIn, err := p.w.see(ownedDefinitionKind, k.crd())
		if wanted {
			p.w.setBare(crdKind(k.crd(), true), false)
		}
		if wanted && shownIn != ownedDefinitionKind {
			kinds = append(kinds, shownIn)
		}
		if v := p.views[k.crd()]; v.known || !p.offer.shows(k.resource) {
			p.w.follow(k.crd(), mirrorKind(v.kind), wanted && shownIn == ownedDefinitionKind && err == nil)
		}
	}
	p.w.watcher.Set(ownerMirror, append(kinds, p.w.followedKinds()...)...)
}

// mirrorAll makes the cluster show what it shall of every kind.
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

// ownCrossplane is whether the cluster serves CompositeResourceDefinitions that are not copies, or that this is not
// known yet.
func (p *pass) ownCrossplane() (own *condition.Problem, waiting bool) {
	crd := resourceXRD + "." + crossplaneGroup
	v := p.views[crd]
	if !p.offer.shows(resourceXRD) || v.known && v.definition == nil {
		return nil, false
	}
	have, kind, err := p.w.see(ownedDefinitionKind, crd)
	if isUnknown(err) {
		// What keeps it from being known is told where the definition is to be put.
		problem, _ := p.unknown(kind, definitionReasons)
		return nil, problem == nil
	}
	if err != nil || managed.MarksOf(have).IsMastheads() && !v.known {
		return nil, !v.known
	}
	if managed.MarksOf(have).IsMastheads() {
		return p.crossplaneAtWork(mirrorKind(v.kind))
	}
	return &condition.Problem{
		Reason: ReasonOwnCrossplane,
		Message: fmt.Sprintf("The CustomResourceDefinition %q is in the cluster already and was not put there by Masthead: the cluster has a Crossplane "+
			"of its own, or had one. What the hub offers is not shown there.", crd),
	}, false
}

// mirror makes the cluster show what it shall of a kind.
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

// mirrorObjects makes the cluster have the objects of a kind that its class offers, and no other copies. It returns how
// many are as they should be, whether that is all that can be done now, and the first of the problems.
func (p *pass) mirrorObjects(ctx context.Context, k mirroredKind, v view) (objects int, done bool, first *condition.Problem, err error) {
	kind := mirrorKind(v.kind)
	why, waiting := p.unknown(kind, objectReasons)
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

// summary is the first of some problems, with a word about the others.
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

// removeOthers deletes the copies of what the hub does not have, or the class does not offer, any more. It returns the
// first of those that stay because of somebody else.
func (p *pass) removeOthers(ctx context.Context, kind kindwatch.Kind, v view) (left *condition.Problem, err error) {
	wanted := sets.New[string]()
	for _, m := range v.objects {
		if p.offer.includes(m.group) {
			wanted.Insert(m.name())
		}
	}
	have, err := p.w.watcher.List(kind)
	if err != nil {
		// The kind is not followed any more. Its being followed again makes a new request.
		return nil, nil //nolint:nilerr,nilnil // See above.
	}
	var errs []error
	for _, obj := range have {
		switch finalizer := foreignFinalizer(obj); {
		case !p.owns(obj) || wanted.Has(obj.GetName()) || p.refused:
		case finalizer == "":
			errs = append(errs, p.remove(ctx, kind, obj))
		case left == nil:
			left = &condition.Problem{Reason: ReasonForeignObjectsLeft, Message: fmt.Sprintf("%s %q is not shown any more. It stays, because somebody in the cluster works with it, "+
				"who has put the finalizer %q on it.", kind.Kind, obj.GetName(), multicluster.BoundedText(finalizer))}
		}
	}
	return left, errors.Join(errs...)
}

// unknown returns why the objects of a kind in the cluster are not known, or that this is only a matter of time.
func (p *pass) unknown(kind kindwatch.Kind, reasons reasonSet) (*condition.Problem, bool) {
	state, message := p.w.watcher.State(kind)
	switch state {
	case kindwatch.StateSynced:
		return nil, false
	case kindwatch.StateForbidden:
		return &condition.Problem{Reason: reasons.forbidden, Message: managed.Unwatchable(kind.GroupResource())}, false
	case kindwatch.StateTooLarge:
		return &condition.Problem{Reason: reasons.tooLarge, Message: "Nothing of the kind is written: " + message + "."}, false
	case kindwatch.StateStale:
		return &condition.Problem{Reason: reasons.rejected, Message: "What the cluster has of the kind is not known: " + message + "."}, false
	case kindwatch.StateNotServed:
		if reasons.notServed != "" {
			return &condition.Problem{Reason: reasons.notServed, Message: fmt.Sprintf("The cluster does not serve %s.", kind.GroupResource())}, false
		}
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
	}
	return nil, true
}

// isFatal is whether an error is about the cluster rather than about one object: the API server did not answer.
func isFatal(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status)
}
