// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// requirementReconciler carries claims to the hub, and their status and connection Secrets back.
type requirementReconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader

	// hubClient and hubReader are the hub with the rights of the identity of the context; see identity.go.
	hubClient  client.Writer
	hubReader  client.Reader
	identities *hubaccess.Clients

	clock     clock.PassiveClock
	protected []string
	metrics   *Metrics

	// patience is how long the first status of a claim waits for the hub's; see AwaitsFirstStatus.
	patience time.Duration

	// bursts knows which clusters create many claims right now.
	bursts *bursts

	// inFlight knows which creations in the hub may be under way.
	inFlight *inFlight

	// ledger has what is kept about each claim.
	ledger ledger
}

// requirementOptions are what the reconciler needs.
type requirementOptions struct {
	hub        *view.Hub
	workloads  *view.Clusters
	fleet      view.Fleet
	classes    client.Reader
	identities *hubaccess.Clients
	clock      clock.PassiveClock
	metrics    *Metrics

	// protected are namespaces of the hub that are never a target.
	protected []string

	// patience is how long the first status of a claim waits for the hub's, and inFlightGrace how long a creation in the hub may be
	// under way after its sender has given it up.
	patience, inFlightGrace time.Duration
}

func newRequirementReconciler(o requirementOptions) *requirementReconciler {
	return &requirementReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes,
		hubClient: hubaccess.API{}, hubReader: hubaccess.API{}, identities: o.identities,
		clock: o.clock, protected: o.protected, metrics: o.metrics, patience: o.patience,
		bursts: newBursts(o.clock), inFlight: newInFlight(o.clock, o.inFlightGrace),
	}
}

// pushedClaim identifies an apply by its input and its result.
type pushedClaim struct {
	hash            string
	uid             types.UID
	resourceVersion string
}

// scope is what a reconcile knows when it starts.
type scope struct {
	request.Request

	// workload is the cluster of the claim.
	workload *view.Cluster

	// us is the source of the claim, as the hub's object shall name it.
	us ownership.Source

	// home is where that source is now, as far as it is known.
	home ownership.Residence

	// namespace is the claim's namespace in the workload cluster, without what the agent does not use of it; nil if it is not
	// known, or is gone.
	namespace *unstructured.Unstructured

	// class is the cluster's EnrollmentClass; nil if there is none of that name.
	class     *fleetv1alpha1.EnrollmentClass
	className string

	// inTheWay are the Secrets of others that were found where the claim's should be.
	inTheWay []types.NamespacedName

	// publishedKnown is whether it is known what the hub publishes.
	publishedKnown bool

	// published is whether the hub publishes the kind, in the version that the claim is followed in.
	published bool

	// offered is whether the hub publishes the claim's kind, in the version of the request, to the cluster.
	offered bool

	// form is what the hub publishes the kind as.
	form crossplane.Form

	// pairing is what decides where the claim goes; nil if that is not known.
	pairing *pairing

	// claim is the claim in the workload cluster. It is shared, and replaced by what a write returned.
	claim *unstructured.Unstructured

	// vanished says that the claim is gone, and claim is its last state.
	vanished bool

	// protected says that the claim had our finalizer when the reconcile began, so that a creation for it may have been sent before.
	protected bool
}

// outcome is what a reconcile found, to be told to the user.
type outcome struct {
	// silent says that there is nothing to tell: the claim is gone, or not ours to touch, or what there is to know will
	// come as an event.
	silent bool

	// hub is the object in the hub whose status the claim shall show; nil if there is none, or none of ours.
	hub *unstructured.Unstructured

	// current says that the spec of that object is what the claim says.
	current bool

	// problem is why the claim is not synchronised; nil if it is.
	problem *condition.Problem

	// holder is who has the claim's name in the hub, if that is the problem.
	holder string

	// elsewhere is where in the hub the claim's object is, if that is not where it should be.
	elsewhere *ownership.Place

	// err is why this has to be tried again with back-off, after it was told.
	err error

	// RetryAfter is when to look again, if nothing would tell that something has changed.
	retryAfter time.Duration
}

// Reconcile brings one claim and its object in the hub together.
func (r *requirementReconciler) Reconcile(ctx context.Context, req request.Request) (reconcile.Result, error) {
	s, err := r.scope(ctx, req)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	defer r.tidy(req)
	o, err := r.act(ctx, s)
	if err != nil {
		if p := r.failed(ctx, s, err); p != nil {
			_, reportErr := r.report(ctx, s, outcome{hub: r.knownInHub(s), problem: p})
			err = errors.Join(err, reportErr)
		}
		return reconcile.Result{}, multicluster.AsForeign(err)
	}
	r.succeeded(req)
	result, err := r.report(ctx, s, o)
	if err == nil && o.err != nil {
		return reconcile.Result{}, multicluster.AsForeign(o.err)
	}
	return result, multicluster.AsForeign(err)
}

// act does what there is to do about a claim, with the rights of the identity that its class and its namespace say.
func (r *requirementReconciler) act(ctx context.Context, s *scope) (outcome, error) {
	ctx, o, err := r.authenticate(ctx, s)
	if err != nil || o != nil {
		return deref(o), err
	}
	act := r.synchronise
	switch {
	case s.vanished:
		act = r.deleteVanished
	case s.claim.GetDeletionTimestamp() != nil:
		act = r.delete
	}
	out, err := act(ctx, s)
	if isUnauthorized(err) {
		// The credentials can have been replaced since they were read.
		r.identities.Reject(ctx)
		return outcome{silent: true, retryAfter: condition.Soon}, nil
	}
	return out, err
}

// claimOf returns the claim that a request is about, and whether it is the last state of one that vanished; nil if there is
// nothing to do.
func (r *requirementReconciler) claimOf(w *view.Cluster, req request.Request) (claim *unstructured.Unstructured, vanished bool, err error) {
	f, ok := w.Followed(req.Kind.GroupResource().String())
	if !ok || f.Kind != req.Kind {
		r.forget(req)
		return nil, false, nil
	}
	claim, err = w.Watcher.Get(req.Kind, req.NamespacedName)
	last := r.vanishedClaim(req, claim != nil)
	switch {
	case errors.Is(err, kindwatch.ErrNotSynced), errors.Is(err, kindwatch.ErrNotWatched):
		return nil, false, nil // Its coming makes a new request.
	case client.IgnoreNotFound(err) != nil:
		return nil, false, err
	case err != nil && last != nil:
		return last, true, nil
	case err != nil, f.DeletionsOnly && (claim.GetDeletionTimestamp() == nil || !w.BearsFinalizer(claim)):
		// It is gone, or not ours to touch.
		r.forgetAllButVanished(req)
		return nil, false, nil //nolint:nilerr // Not to be there is no error.
	}
	return claim, false, nil
}

// scope finds out what the request is about. It returns nil if there is nothing to do.
func (r *requirementReconciler) scope(ctx context.Context, req request.Request) (*scope, error) {
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	claim, vanished, err := r.claimOf(w, req)
	if err != nil || claim == nil {
		return nil, err
	}
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return nil, nil //nolint:nilnil // A change of the cluster makes a new request.
	}

	s := &scope{
		Request:   req,
		workload:  w,
		us:        ownership.Source{Identifier: cluster.EffectiveIdentifier(), Namespace: req.Namespace},
		claim:     claim,
		className: cluster.Enrolment.Class,
		vanished:  vanished,
		protected: w.BearsFinalizer(claim),
		home:      ownership.Residence{Cluster: types.UID(cluster.UID)},
	}
	if s.namespace, err = w.Watcher.Get(view.NamespaceKind, types.NamespacedName{Name: req.Namespace}); err == nil {
		s.home.Namespace = s.namespace.GetUID()
	}
	if s.class, err = connection.Class(ctx, r.classes, s.className); err != nil {
		return nil, err
	}
	p, published, known := r.hub.Publication(req.Kind.GroupResource().String())
	s.publishedKnown, s.form = known, p.Form
	s.published = published && p.Kind == req.Kind
	s.offered = s.published && s.class != nil && view.Offers(s.class.Spec.Agent, req.Kind.Group)
	return s, nil
}

// synchronise brings the hub to what a claim says.
func (r *requirementReconciler) synchronise(ctx context.Context, s *scope) (outcome, error) {
	if s.class != nil && s.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return r.standDown(ctx, s)
	}
	if !s.publishedKnown {
		return outcome{silent: true}, nil
	}
	target, p := r.target(s)
	if p != nil {
		return r.bringBackAnyway(ctx, s, outcome{hub: r.recordedInHub(s, p), problem: p}, nil)
	}
	key := ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: target, Name: s.Name}}

	// Waiting begins before looking, so that nothing happens between the two unseen. Whoever turns out to have no reason
	// to wait stops.
	r.hub.Wait(key, s.Request)
	hub, o := r.look(s, key)
	if o != nil && o.elsewhere != nil {
		out, err := r.move(ctx, s, *o.elsewhere, key)
		return r.bringBackAnyway(ctx, s, out, err)
	}
	if o != nil {
		return r.disclosable(ctx, s, key, *o)
	}
	going := hub != nil && hub.GetDeletionTimestamp() != nil
	if hub == nil || going {
		if p := mayCreate(s.claim, s.class.Spec.Agent.RecreatePolicy, recreates(s.claim, s.pairing.annotations), s.Kind.Kind, key); p != nil {
			return outcome{hub: hub, problem: p}, nil
		}
	}
	r.hub.StopWaiting(s.Request)

	if going {
		return outcome{hub: hub, problem: &condition.Problem{
			Reason:  reason.ReasonRecreating,
			Message: fmt.Sprintf("The %s %q in the namespace %q of the hub is being deleted, and will be created again.", s.Kind.Kind, s.Name, target),
		}}, nil
	}
	return r.carry(ctx, s, key, hub)
}

// carry makes the hub's object what the claim says, and brings back what belongs to it.
func (r *requirementReconciler) carry(ctx context.Context, s *scope, key ownership.Place, hub *unstructured.Unstructured) (outcome, error) {
	if p := unresolved(s.claim); p != nil {
		return r.bringBackAnyway(ctx, s, outcome{hub: hub, problem: p}, nil)
	}
	if o, err := r.finalize(ctx, s, hub); err != nil || o != nil {
		return r.bringBackAnyway(ctx, s, deref(o), err)
	}
	hub, o, err := r.adopt(ctx, s, key, hub)
	if err != nil || o != nil {
		return deref(o), err
	}
	hub, o, err = r.push(ctx, s, key, hub)
	r.awaitNamespace(s, key.Namespace, o)
	if err != nil || o != nil {
		return r.bringBackAnyway(ctx, s, deref(o), err)
	}
	return r.bringBack(ctx, s, hub)
}

// finalize makes sure that the claim has the finalizer, or says why it cannot get it.
func (r *requirementReconciler) finalize(ctx context.Context, s *scope, hub *unstructured.Unstructured) (*outcome, error) {
	err := r.addFinalizer(ctx, s)
	if err == nil {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	p := reason.OfWorkload(err, "change the finalizers of this claim", reason.ReasonWorkloadRejected)
	if p == nil {
		return nil, err
	}
	return &outcome{hub: hub, problem: p, retryAfter: condition.SlowRetry()}, nil
}

// bringBackAnyway brings back what belongs to a claim that could not be pushed: a password that was rotated in the hub is needed
// whatever became of an edit that the hub rejects. Why the claim was not pushed is told first.
func (r *requirementReconciler) bringBackAnyway(ctx context.Context, s *scope, up outcome, err error) (outcome, error) {
	if err != nil || up.hub == nil || up.problem == nil {
		return up, err
	}
	if !s.owns(up.hub) {
		up.hub = nil
		return up, nil
	}
	if up.hub.GetDeletionTimestamp() != nil {
		return up, nil
	}
	down, err := r.bringBack(ctx, s, up.hub)
	if err != nil {
		return outcome{}, err
	}
	up.retryAfter = condition.Sooner(up.retryAfter, down.retryAfter)
	return up, nil
}

// bringBack brings what the hub has made of a claim to the workload cluster.
func (r *requirementReconciler) bringBack(ctx context.Context, s *scope, hub *unstructured.Unstructured) (outcome, error) {
	late, lateAfter, err := r.lateInitialise(ctx, s, hub)
	if err != nil {
		return outcome{}, err
	}
	p, retryAfter, err := r.pullSecrets(ctx, s, hub)
	if p == nil {
		p = late
	}
	return outcome{hub: hub, current: true, problem: p, retryAfter: condition.Sooner(retryAfter, lateAfter)}, err
}

// deref is the outcome, if there is one.
func deref(o *outcome) outcome {
	if o == nil {
		return outcome{}
	}
	return *o
}

// classNotFound is the condition of a claim whose cluster names a class that is not there.
func classNotFound(name string) *condition.Problem {
	return &condition.Problem{
		Reason:  reason.ReasonClassNotFound,
		Message: fmt.Sprintf("The EnrollmentClass %q, with which this cluster is enrolled, does not exist.", name),
	}
}

// look returns the claim's object in the hub, if there is one and it is the claim's or can become it, or why nothing can be
// done.
func (r *requirementReconciler) look(s *scope, key ownership.Place) (*unstructured.Unstructured, *outcome) {
	// The state says that the index of origins is complete, too: the objects of a list are known to the watcher before it has
	// reported them.
	state, _ := r.hub.Watcher.State(key.Kind)
	hub, err := r.hub.Watcher.Get(key.Kind, key.NamespacedName)
	if state != kindwatch.StateSynced || err != nil && !apierrors.IsNotFound(err) {
		p := r.unknown(s.Kind)
		return nil, &outcome{silent: p == nil, problem: p}
	}
	owned := ownership.None
	if hub != nil {
		owned = s.ownership(hub)
	}
	taken := hub != nil && owned != ownership.Ours && !ownership.Adoptable(hub, s.claim, s.us, s.home)
	// That the name is taken is in the way of those only that want to move there.
	inTheWay := taken && recreates(s.claim, s.pairing.annotations)
	if place := r.elsewhere(s, key, owned == ownership.Ours); place != nil && !inTheWay {
		r.hub.Wait(*place, s.Request)
		return nil, &outcome{problem: targetChanged(*place, key), elsewhere: place}
	}
	if taken && owned == ownership.Former {
		return nil, &outcome{problem: namespaceRecreated(s.Kind.Kind, key.Namespace, s.Name, s.us)}
	}
	if taken {
		holder := ownership.HolderOf(hub)
		return nil, &outcome{problem: conflict(s.Kind.Kind, key.Namespace, s.Name, holder), holder: holder}
	}
	return hub, nil
}

// unknown is why the claims of a kind in the hub are not known, or nil if they will be in a moment.
func (r *requirementReconciler) unknown(kind kindwatch.Kind) *condition.Problem {
	switch state, _ := r.hub.Watcher.State(kind); state {
	case kindwatch.StateNotServed:
		return &condition.Problem{Reason: reason.ReasonKindNotServed, Message: fmt.Sprintf("The hub does not serve %s now.", kind.GroupResource())}
	case kindwatch.StateForbidden:
		return &condition.Problem{
			Reason:  reason.ReasonForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to list and watch %s in the hub.", kind.GroupResource()),
		}
	case kindwatch.StateStale:
		return &condition.Problem{
			Reason:  reason.ReasonKindNotServed,
			Message: fmt.Sprintf("The hub has not let Masthead list and watch %s for some minutes.", kind.GroupResource()),
		}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateUnwatched, kindwatch.StateTooLarge:
		// The hub's watcher has no limit, so that nothing is too large.
	}
	return nil
}

// forget drops what is kept about a claim that is gone or left alone.
func (r *requirementReconciler) forget(req request.Request) {
	r.forgetAllButVanished(req)
	r.ledger.edit(req, func(e *entry) { e.vanished = nil })
}

// forgetAllButVanished is forget for a claim that turns out not to be there. Its last state can have been remembered since
// that was looked up, and is looked at next.
func (r *requirementReconciler) forgetAllButVanished(req request.Request) {
	r.hub.StopWaiting(req)
	if w, ok := r.workloads.Get(req.ClusterName); ok {
		w.AwaitSecrets(req)
	}
	r.metrics.requirement(req, "")
	r.ledger.edit(req, func(e *entry) { *e = entry{vanished: e.vanished} })
}
