// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
)

// Metrics are told how the definitions fare in the workload clusters.
type Metrics interface {
	// Definition notes whether a definition that is offered to a cluster is there as it is in the hub.
	Definition(cluster mcr.ClusterName, crd string, served bool)

	// ForgetDefinition drops what was noted about a definition, and ForgetCluster everything about a cluster.
	ForgetDefinition(cluster mcr.ClusterName, crd string)
	ForgetCluster(cluster mcr.ClusterName)
}

// Reconciler keeps the definitions of the published claim kinds in the workload clusters as they are in the hub,
// and thereby decides which kinds of claims are synchronised in which cluster.
type Reconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader
	hubReader client.Reader
	recorder  events.EventRecorder
	reporter  managed.Reporter
	metrics   Metrics

	clock clock.PassiveClock

	// users are as whom the clusters know Masthead.
	users *readonlypolicy.Users

	// grace is how long a definition that is not offered any more is closed before it is deleted.
	grace time.Duration

	// KindGone is called when the claims of a kind are not followed any more in a cluster.
	kindGone func(mcr.ClusterName, kindwatch.Kind)

	mu sync.Mutex
	// wanted are the definitions that the hub's ones lead to, read once for all clusters.
	wanted map[string]wantedDefinition

	// judgeable is what is needed of the hub's definitions to judge those of clusters, read once for all clusters.
	judgeable map[string]HubDefinition

	// refused is the reason that was last told about a definition that could not be put into a cluster.
	refused *managed.Told[mcreconcile.Request]
}

// Options are what the reconciler needs; its fields of the same names say what they are.
type Options struct {
	Hub       *view.Hub
	Workloads *view.Clusters
	Fleet     view.Fleet
	Classes   client.Reader
	HubReader client.Reader
	Recorder  events.EventRecorder
	Reporter  managed.Reporter
	Metrics   Metrics
	Clock     clock.PassiveClock
	Users     *readonlypolicy.Users
	Grace     time.Duration
	KindGone  func(mcr.ClusterName, kindwatch.Kind)
}

// New returns a reconciler of definitions.
func New(o Options) *Reconciler {
	return &Reconciler{
		hub: o.Hub, workloads: o.Workloads, fleet: o.Fleet, classes: o.Classes, hubReader: o.HubReader, recorder: o.Recorder,
		reporter: o.Reporter, metrics: o.Metrics, clock: o.Clock, users: o.Users, grace: o.Grace, kindGone: o.KindGone,
		wanted: map[string]wantedDefinition{}, judgeable: map[string]HubDefinition{}, refused: managed.NewTold[mcreconcile.Request](),
	}
}

// wantedDefinition is what all workload clusters shall have for one state of a definition of the hub.
type wantedDefinition struct {
	of   managed.State
	crd  *unstructured.Unstructured
	hash string

	// converts is whether the hub's definition has a conversion webhook.
	converts bool
}

// Reconcile puts one definition into one workload cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, req)
	return result, multicluster.AsForeign(err)
}

func (r *Reconciler) reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		// The cluster's claims are not watched yet, or not any more. Engaging it queues its definitions.
		return reconcile.Result{}, nil
	}
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok {
		return reconcile.Result{}, nil
	}
	defer r.tidy(req.ClusterName)
	l, err := r.look(ctx, w, cluster, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if l.PublishedKnown && l.ClusterKnown && !l.Offered {
		r.forget(w, req, l.Facts)
	}
	return r.carryOut(ctx, PhaseOf(l.Facts), w, cluster, req, l)
}

// carryOut does what the phase of a definition asks for.
func (r *Reconciler) carryOut(
	ctx context.Context, phase Phase, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, l looked,
) (reconcile.Result, error) {
	if l.Following && (phase == Retained || phase == Withdrawn) {
		r.hub.EnqueueKind(w, l.Followed.Kind.GroupResource(), r.hub.Requirements.Add)
	}
	switch phase {
	case Offered:
		return r.offer(ctx, w, cluster, req, l)
	case Withdrawn:
		return r.withdraw(ctx, w, req, l.Followed.Kind, l.Current)
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

// offer puts a definition into the cluster, or keeps it as it is in the hub. While the hub's cannot be known, nothing
// happens.
func (r *Reconciler) offer(
	ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, l looked,
) (reconcile.Result, error) {
	want, err := r.want(ctx, req.Name, l.publication.Kind.Version)
	if err != nil || want == nil {
		return reconcile.Result{}, err
	}
	return r.ensure(ctx, w, cluster, req, l.publication, l.Current, want)
}

// forget drops what is told of a definition that is not offered; and what is noted of it, if it is none of ours.
// Whoever can write definitions in the cluster decides how many names there are.
func (r *Reconciler) forget(w *view.Cluster, req mcreconcile.Request, f Facts) {
	switch {
	case f.Following || f.Current != nil && IsOurs(f.Current, f.Owner):
		w.SetUnoffered(req.Name, true)
	case f.Current == nil:
		w.ForgetDefinition(req.Name)
	}
	r.refused.IsNews(req, "")
	r.reporter.DefinitionForgotten(req.ClusterName, req.Name)
	r.metrics.ForgetDefinition(req.ClusterName, req.Name)
}

// looked is what is known of a definition when a reconcile begins.
type looked struct {
	Facts

	// publication is what the hub offers under the definition's name, if it does.
	publication crossplane.Publication

	// states identify the definitions on both sides on which it is judged how a kind is followed that is not offered.
	states string
}

// look finds out what watches and caches know of a definition.
//
// A definition that is not offered stays in the cluster as long as there are claims of that kind, because deleting it
// would delete them, which is their owners' decision. Its claims are still watched, so that one that is deleted is
// deleted in the hub, too, and does not hang on our finalizer.
func (r *Reconciler) look(ctx context.Context, w *view.Cluster, cluster connection.Cluster, name string) (looked, error) {
	p, offered, known := r.hub.Publication(name)
	current, err := w.Watcher.Get(view.OwnedCRDKind, types.NamespacedName{Name: name})
	l := looked{publication: p, Facts: Facts{
		PublishedKnown: known || r.hub.CannotKnowPublications(),
		ClusterKnown:   !errors.Is(err, kindwatch.ErrNotSynced),
		Current:        current, Owner: w.Owner(),
	}}
	if !l.PublishedKnown || !l.ClusterKnown {
		return l, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return l, err
	}
	class, err := connection.Class(ctx, r.classes, cluster.Enrolment.Class)
	if err != nil {
		return l, err
	}
	// A class that does not exist offers nothing. A cluster that is left alone, or of which nobody says what it is
	// offered, keeps what it has.
	l.Offered = offered && class != nil && view.Offers(class.Spec.Agent, p.Kind.Group)
	l.Kept = class == nil || class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
	l.Followed, l.Following = w.Followed(name)
	l.states, l.JudgeableKnown = r.hub.Judgement(current, name)
	l.Judged = w.IsJudged(name, l.states)
	return l, nil
}

// Judge reads a definition that is not offered on both sides, and decides how it is retained.
func (r *Reconciler) Judge(
	ctx context.Context, w *view.Cluster, req mcreconcile.Request, before view.Followed, following bool, states string,
) (reconcile.Result, error) {
	crd, err := r.get(ctx, w.Reader, req.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case crd == nil:
		// Its claims are gone, too.
		r.Unfollow(w, req.Name)
		return reconcile.Result{}, nil
	case !IsOurs(crd, w.Owner()):
		if !following {
			return reconcile.Result{}, nil
		}
		if _, other := managed.MarksOf(crd).OtherHub(w.Owner()); other {
			r.Unfollow(w, req.Name)
			return reconcile.Result{}, nil
		}
		return r.drain(w, req.Name, before.Kind), nil
	}
	f, ok := view.Followed{}, false
	if _, could := ClaimKindOf(crd); could {
		hub, known, err := r.hubDefinition(ctx, req.Name)
		if err != nil || !known {
			return reconcile.Result{}, err
		}
		f, ok = RetainedKind(crd, hub)
	}
	if !ok {
		r.Unfollow(w, req.Name)
		w.SetJudged(req.Name, states)
		return reconcile.Result{}, nil
	}
	if !following && w.RetainedKinds() >= MaxRetainedKinds {
		return reconcile.Result{}, nil
	}
	w.SetJudged(req.Name, states)
	if !r.Follow(w, req.Name, f) {
		// Its claims may have become known in the same instant in which it changed, so that nothing else would tell that
		// there are none.
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	}
	return reconcile.Result{}, nil
}

// drain treats a definition that has the name of one of ours and is not ours, or not any more. Its claims are left
// alone, except that those which bear our finalizer, because it was ours once, can be deleted. When there are none, it
// is not followed any more; only we could add the finalizer.
func (r *Reconciler) drain(w *view.Cluster, crd string, kind kindwatch.Kind) reconcile.Result {
	result := reconcile.Result{RequeueAfter: condition.SlowRetry()}
	if w.IsDrained(crd) {
		r.Unfollow(w, crd)
		return result
	}
	if r.Follow(w, crd, view.Followed{Kind: kind, InHub: true, DeletionsOnly: true}) {
		return result
	}
	claims, err := w.Watcher.List(kind)
	if err == nil && !slices.ContainsFunc(claims, w.BearsFinalizer) {
		w.SetDrained(crd)
		r.Unfollow(w, crd)
	}
	return result
}

// Follow has the claims of a kind followed in a cluster, and says whether that is news.
func (r *Reconciler) Follow(w *view.Cluster, crd string, f view.Followed) bool {
	before, following := w.Followed(crd)
	news := w.Follow(crd, f)
	if news {
		r.hub.RefreshFollowed(w)
	}
	if following && before.Kind != f.Kind {
		r.kindGone(w.Name, before.Kind)
	}
	return news
}

// Unfollow leaves the claims of a kind in a cluster alone.
func (r *Reconciler) Unfollow(w *view.Cluster, crd string) {
	before, _ := w.Followed(crd)
	if w.Unfollow(crd) {
		r.hub.RefreshFollowed(w)
		r.kindGone(w.Name, before.Kind)
	}
}

// Forget drops what is kept about a cluster that is gone.
func (r *Reconciler) Forget(name mcr.ClusterName) {
	r.refused.Forget(func(req mcreconcile.Request) bool { return req.ClusterName == name })
}

// tidy is the same for a definition.
func (r *Reconciler) tidy(name mcr.ClusterName) {
	r.workloads.IfGone(name, func() {
		r.Forget(name)
		r.metrics.ForgetCluster(name)
	})
}
