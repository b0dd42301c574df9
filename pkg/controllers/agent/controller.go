// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// requirementReconciler carries claims to the hub, and their status and connection Secrets back.
type requirementReconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader

	// hubClient and HubReader are the hub with the rights of the identity of the context; see identity.go.
	hubClient  client.Writer
	hubReader  client.Reader
	identities *hubaccess.Clients

	clock     clock.PassiveClock
	protected []string
	metrics   *Metrics

	// bursts knows which clusters create many claims right now.
	bursts *bursts

	// inFlight knows which creations in the hub may be under way.
	inFlight *inFlight

	// ledger has what is kept about each claim.
	ledger *ledger

	// What flows down: late fields, Secrets, and what users are told.
	late    lateFields
	secrets secretCopier
	reports reporter
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
	ledger, bursts := &ledger{}, newBursts(o.clock)
	return &requirementReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes,
		hubClient: hubaccess.API{}, hubReader: hubaccess.API{}, identities: o.identities,
		clock: o.clock, protected: o.protected, metrics: o.metrics, ledger: ledger,
		bursts: bursts, inFlight: newInFlight(o.clock, o.inFlightGrace),
		late:     lateFields{clock: o.clock, metrics: o.metrics, ledger: ledger, patience: o.patience},
		secrets:  secretCopier{hub: o.hub, hubReader: hubaccess.API{}, metrics: o.metrics},
		reports:  reporter{clock: o.clock, metrics: o.metrics, ledger: ledger, bursts: bursts, patience: o.patience},
	}
}

// pushedClaim identifies an apply by its input and its result.
type pushedClaim struct {
	hash            string
	uid             types.UID
	resourceVersion string
}

// Reconcile brings one claim and its object in the hub together. Facts are gathered, a plan is made of them, its steps are applied, and
// what the hub has flows down whatever became of the steps.
func (r *requirementReconciler) Reconcile(ctx context.Context, req request.Request) (reconcile.Result, error) {
	s, err := r.look(ctx, req)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	defer r.tidy(req)
	o := outcome{hub: s.Own()}
	if ctx, err = r.authenticate(ctx, s); err == nil {
		o, err = r.apply(ctx, s, plan.Decide(s.Facts))
	}
	if !isUnauthorized(err) && !apierrors.IsConflict(err) {
		err = errors.Join(err, r.bringDown(ctx, s, &o))
	}
	result, err := r.tell(ctx, s, o, err)
	return result, multicluster.AsForeign(err)
}

// tell tells the user what came of a reconcile, and says when it is tried again. An error of the reconcile is told if it lasts. While it
// may pass, the status of the hub is shown beside the condition that is there.
func (r *requirementReconciler) tell(ctx context.Context, s *scope, o outcome, err error) (reconcile.Result, error) {
	switch {
	case isUnauthorized(err):
		// The credentials can have been replaced since they were read.
		r.identities.Reject(ctx)
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	case err != nil:
		lasting, tellable := r.reports.failed(ctx, s, err)
		if !tellable {
			return reconcile.Result{}, err
		}
		o.silent, o.problem, o.asShown = false, lasting, lasting == nil
		_, reportErr := r.reports.report(ctx, s, o)
		return reconcile.Result{}, errors.Join(err, reportErr)
	}
	r.reports.succeeded(s.Request)
	result, err := r.reports.report(ctx, s, o)
	if err == nil && o.err != nil {
		return reconcile.Result{}, o.err
	}
	return result, err
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
