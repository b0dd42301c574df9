// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Reconcile reconciles one definition in one workload cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, req)
	return result, multicluster.AsForeign(err)
}

func (r *Reconciler) reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	w, ok := r.Workloads.Get(req.ClusterName)
	if !ok {
		// The cluster's claims are not watched yet, or no longer. Engaging it queues its definitions.
		return reconcile.Result{}, nil
	}
	cluster, ok := r.Fleet.Lookup(req.ClusterName)
	if !ok {
		return reconcile.Result{}, nil
	}
	defer r.forgetGone(req.ClusterName)
	l, err := r.observe(ctx, w, cluster, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if l.PublishedKnown && l.ClusterKnown && !l.Offered {
		r.forget(w, req, l)
	}
	return r.carryOut(ctx, DecidePhase(l.Facts), w, cluster, req, l)
}

// carryOut executes the phase of a definition.
func (r *Reconciler) carryOut(
	ctx context.Context, phase Phase, w *index.Cluster, cluster connection.Cluster, req mcreconcile.Request, l looked,
) (reconcile.Result, error) {
	if l.Following && (phase == Retained || phase == Withdrawn) {
		r.Hub.EnqueueKind(w, l.Followed.Kind.GroupResource(), r.Hub.Requirements.Add)
	}
	switch phase {
	case Offered:
		return r.offer(ctx, w, cluster, req, l)
	case Withdrawn:
		errs := apierror.Each(r.withdraw(ctx, w, req, l.Followed.Kind, l.Current))
		if err := condition.Join(errs...); err == nil || condition.IsPending(err) {
			r.forgetReported(req)
		}
		return r.conclude(ctx, cluster, req, errs...)
	case Unjudged:
		return r.Judge(ctx, w, req, l.Followed, l.Following, l.states)
	case Retained:
		if l.Kept && l.ours() && isMarked(l.Current, l.Owner) {
			return r.reopen(ctx, w, req)
		}
	case Unknown, Unrelated:
	}
	return reconcile.Result{}, nil
}

// offer installs a definition in the cluster, or keeps it as it is in the hub. It does nothing while the hub's is
// unknown.
func (r *Reconciler) offer(
	ctx context.Context, w *index.Cluster, cluster connection.Cluster, req mcreconcile.Request, l looked,
) (reconcile.Result, error) {
	want, err := r.want(ctx, req.Name, l.publication.Kind)
	if err == nil {
		l.publication.Kind = want.kind
		err = r.ensure(ctx, w, req, l.publication, l.Current, want)
	}
	if err != nil {
		return r.conclude(ctx, cluster, req, err)
	}
	return r.Accept(ctx, w, cluster, req, want.kind)
}

// conclude reports the problem of a definition, if an error is one, and returns how the reconciliation ends whose steps
// ended with these errors.
func (r *Reconciler) conclude(
	ctx context.Context, cluster connection.Cluster, req mcreconcile.Request, errs ...error,
) (reconcile.Result, error) {
	if p, isProblem := errors.AsType[*condition.Error](errors.Join(errs...)); isProblem {
		r.report(ctx, cluster, req, p)
	}
	return condition.Result(errs...)
}

// forget drops what was reported about a definition that is not offered, unless it is being removed, its state if we do
// not own it, and its content if the hub does not publish it. Cluster users who can write definitions decide how many
// names there are.
func (r *Reconciler) forget(w *index.Cluster, req mcreconcile.Request, l looked) {
	switch {
	case l.Following || l.Current != nil && IsOurs(l.Current, l.Owner):
		w.EditDefinition(req.Name, func(d *index.Definition) { d.Unoffered = true })
	case l.Current == nil:
		w.EditDefinition(req.Name, func(d *index.Definition) { *d = index.Definition{Followed: d.Followed} })
	}
	if l.publication == (crossplane.Publication{}) {
		r.mu.Lock()
		delete(r.wanted, req.Name)
		r.mu.Unlock()
	}
	if DecidePhase(l.Facts) != Withdrawn {
		r.forgetReported(req)
	}
}

// forgetReported drops what was reported about a definition.
func (r *Reconciler) forgetReported(req mcreconcile.Request) {
	r.reports.Forget(req.ClusterName, req.Name)
	r.Metrics.ForgetDefinition(req.ClusterName, req.Name)
}

// looked is the known state of a definition at the start of a reconcile.
type looked struct {
	Facts

	// publication is what the hub offers under the definition's name, if it does.
	publication crossplane.Publication

	// states identify the definitions on both sides from which it is judged how a kind that is not offered is followed.
	states string
}

// observe gathers a definition's state from watches and caches.
//
// A definition that is not offered stays in the cluster as long as it has claims, because deleting it would delete
// them, which is their owners' decision. Its claims are still watched, so that deleting one also deletes it in the hub,
// and does not hang on our finalizer.
func (r *Reconciler) observe(ctx context.Context, w *index.Cluster, cluster connection.Cluster, name string) (looked, error) {
	p, offered, known := r.Hub.Publication(name)
	current, err := w.Watcher.Get(index.OwnedCRDKind, types.NamespacedName{Name: name})
	l := looked{publication: p, Facts: Facts{
		PublishedKnown: known || r.Hub.CannotKnowPublications(),
		ClusterKnown:   !errors.Is(err, kindwatch.ErrNotSynced),
		Current:        current, Owner: w.Owner(),
	}}
	if !l.PublishedKnown || !l.ClusterKnown {
		return l, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return l, err
	}
	class, err := connection.Class(ctx, r.Classes, cluster.Enrolment.Class)
	if client.IgnoreNotFound(err) != nil {
		return l, err
	}
	// A class that does not exist offers nothing. A cluster whose class is missing or disables the agent keeps what it
	// has.
	l.Offered = offered && class != nil && index.Offers(class.Spec.Agent, p.Kind.Group)
	l.Kept = class == nil || class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
	l.Followed, l.Following = w.Followed(name)
	l.states, l.JudgeableKnown = Judgement(r.Hub, current, name)
	l.Judged = l.states != "" && w.Definition(name).Judged == l.states
	return l, nil
}

// Forget drops the state of a cluster that is gone.
func (r *Reconciler) Forget(name mcr.ClusterName) {
	r.reports.ForgetCluster(name)
}

// forgetGone does the same if the cluster is gone, for metrics too.
func (r *Reconciler) forgetGone(name mcr.ClusterName) {
	r.Workloads.IfGone(name, func() {
		r.Forget(name)
		r.Metrics.ForgetCluster(name)
	})
}
