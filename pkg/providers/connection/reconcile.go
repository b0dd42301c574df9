// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/allocation"
	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// maxSteps is more than any chain of steps is long. A worker that got that far lets the others have a turn.
const maxSteps = 16

// errBusy says that there is no room to talk to a cluster now. The enrolment is woken when there is.
var errBusy = errors.New("too many clusters are being talked to")

// Reconcile brings one enrolment as far as it gets now.
func (p *Provider) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	var r *record
	defer func() {
		var waits [allocation.Lanes]bool
		if r != nil {
			waits = r.waits
		}
		p.admission.Settle(key, waits)
	}()
	s, ok := p.sources[key.Source]
	if !ok {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("there is no source %q", key.Source))
	}
	e, err := s.Describe(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot describe the enrolment of cluster %q: %w", key, err)
	}
	// The record comes first: what arrives from now on, and is not in the cache that hold reads, finds it and wakes it.
	r = p.recordOf(key, e)
	if r != nil {
		r.waits = [allocation.Lanes]bool{}
	}
	held, err := p.hold(ctx, key, e)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r == nil {
		p.releaseClaim(key)
		p.quota.Leave(key)
		return reconcile.Result{}, nil
	}
	for range maxSteps {
		p.take(ctx, r, e, held)
		d := decide(r.observe(e, p.o.Clock.Now(), p.o.NotReadyGracePeriod))
		if d.step == stepWait {
			break
		}
		if err := p.performGuarded(ctx, r, d); err != nil && !errors.Is(err, errBusy) { // There may be more to do that needs no room.
			p.publish(r, false)
			return reconcile.Result{}, err
		}
		if r.state == StateRemoved {
			if r = p.recordOf(key, e); r == nil { // A new object of the same name starts afresh.
				p.quota.Leave(key)
				return reconcile.Result{}, nil
			}
		}
	}
	p.publish(r, false)
	return reconcile.Result{RequeueAfter: wakeAfter(r.observe(e, p.o.Clock.Now(), p.o.NotReadyGracePeriod))}, nil
}

// recordOf returns the record of a key, and makes one for an enrolment that has none; nil if there is neither. It notes
// the class that the enrolment names now.
func (p *Provider) recordOf(key Key, e *Enrolment) *record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.records.byKey[key]
	if e == nil {
		return r
	}
	if ok {
		p.records.setClass(r, e.Class)
		return r
	}
	name, limits := key.ClusterName(), p.o.Limits.WithDefaults()
	r = &record{
		key: key, name: name, class: e.Class, enrolment: *e, state: StatePending, reason: ReasonConnecting,
		health: metav1.ConditionUnknown, cause: causeFirst, hub: hubidentity.Owner{ID: p.o.Hub.ID},
		throttle: transport.NewThrottle(p.o.QPS, p.o.Burst, p.o.Clock, func(d time.Duration) { p.metrics.waited(name, d) }),
		events:   transport.NewAllowance(limits.Events, p.events),
		answers:  transport.NewAllowance(limits.Answers, p.answers),
	}
	p.records.add(r)
	return r
}

// hold says why an enrolment must not be connected, or nil.
func (p *Provider) hold(ctx context.Context, key Key, e *Enrolment) (*reason.Failure, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // Nothing to hold.
	}
	var byClass *reason.Failure
	if p.o.RequireClass {
		var err error
		if byClass, err = p.holdByClass(ctx, key, e); err != nil {
			return nil, err
		}
	}
	return firstHold(byClass, e), nil
}

// firstHold returns the reason that counts of those that hold an enrolment, or nil. Those that take effect at once come
// first, so that one with a grace period never hides them. Of these, what the class forbids is first: the others are up
// to the owner of the enrolled object, from whom an administrator may just have taken the cluster.
func firstHold(byClass *reason.Failure, e *Enrolment) *reason.Failure {
	switch {
	case byClass != nil && atOnce(byClass.Reason):
		return byClass
	case e.Paused:
		return reason.New(ReasonPaused, "The enrolled object is paused")
	case badIdentifier(e) != nil:
		return badIdentifier(e)
	case !e.Ready:
		return reason.New(e.NotReadyReason, e.NotReadyMessage)
	case e.CredentialsVersion == "":
		return reason.New(ReasonNoCredentials, "There is no Secret with the cluster's kubeconfig")
	default:
		return byClass
	}
}

// take notes what the source says, without acting on it. Of another object under the same name nothing is noted: its
// enrolment gets a record of its own.
func (p *Provider) take(ctx context.Context, r *record, e *Enrolment, held *reason.Failure) {
	if e == nil || e.Object.UID != r.enrolment.Object.UID {
		return
	}
	r.enrolment = *e
	if r.conn != nil {
		r.conn.transport.Account().Move(e.Class)
	}
	if held != nil && r.held == nil {
		r.heldSince = p.o.Clock.Now()
	}
	r.held, r.heldAtOnce = held, held != nil && atOnce(held.Reason)
	if held != nil && r.state == StatePending {
		r.reason, r.message = held.Reason, held.Message
	}
	r.conflict = nil
	if r.uid != "" && r.state.Engaged() && badIdentifier(e) == nil {
		r.conflict = p.claim(ctx, r, r.uid)
	}
}

// atOnce says whether what holds an enrolment ends a connection without a grace period: what somebody asked for or
// forbade, other than what is missing and may come back.
func atOnce(reason string) bool {
	return reason == ReasonPaused || reason == ReasonBadIdentifier || reason == ReasonNamespaceNotAllowed
}

// perform takes one step, and those that follow from it without a new decision.
func (p *Provider) perform(ctx context.Context, r *record, d decision) error {
	ev, why, err := d.event, (*reason.Failure)(nil), error(nil)
	switch d.step {
	case stepWait:
		return nil
	case stepEvent:
		if ev == eventLost {
			why = r.conn.lost()
		}
	case stepCheckCredentials:
		ev, why, err = p.checkCredentials(ctx, r)
	case stepProbe:
		ev, why, err = p.probe(ctx, r)
	}
	if err != nil {
		return err
	}
	for ev != "" {
		if ev, why, err = p.step(ctx, r, ev, why); err != nil {
			return err
		}
	}
	return nil
}

// step feeds an event to the machine and performs its actions. An action that takes I/O leads to the next event.
func (p *Provider) step(ctx context.Context, r *record, ev event, why *reason.Failure) (event, *reason.Failure, error) {
	from := r.state
	to, actions := transition(from, ev)
	r.state = to
	p.describe(r, from, ev, why)
	if from != to || to.Engaged() && ev == eventConnected {
		log.FromContext(ctx).V(r.verbosity(from)).Info("Connection changed", "from", from, "to", to, "event", ev, "reason", r.reason, "message", r.message)
	}
	for _, a := range actions {
		next, why, err := p.act(ctx, r, a, ev)
		if err != nil {
			r.state = from // Not done: the next reconcile decides again.
			return "", nil, err
		}
		if next != "" {
			return next, why, nil
		}
	}
	return "", nil, nil
}

// describe sets the reason and the message for the state that was reached.
func (p *Provider) describe(r *record, from State, ev event, why *reason.Failure) {
	switch {
	case ev == eventConnectFailed && from.Engaged(): // Of a shadow, which changes nothing.
	case r.state == StateConnected:
		r.reason, r.message = ReasonConnected, "Connected"
	case r.state == StatePending && r.held != nil:
		r.reason, r.message = r.held.Reason, r.held.Message
	case r.state == StateDraining && from != StateDraining:
		why = p.drainReason(r, ev)
		r.reason, r.message = why.Reason, why.Message
	case r.state == StateConnecting && (r.attempts == 0 || from == StatePending):
		r.reason, r.message = ReasonConnecting, "A connection is being made"
	case why != nil:
		r.reason, r.message = why.Reason, why.Message
	}
}

func (p *Provider) drainReason(r *record, ev event) *reason.Failure {
	switch {
	case ev == eventUnenrolled:
		return reason.New(ReasonUnenrolled, "The cluster is no longer enrolled, and is being disconnected")
	case ev == eventRefused && r.conflict != nil:
		return r.conflict
	case r.held != nil:
		return r.held
	default:
		return reason.New(ReasonDraining, "The cluster is being disconnected")
	}
}

// act performs one action. Those that talk to a cluster lead to the next event.
func (p *Provider) act(ctx context.Context, r *record, a action, ev event) (event, *reason.Failure, error) {
	switch a {
	case actionConnect:
		return p.connect(ctx, r, false)
	case actionConnectShadow:
		return p.connect(ctx, r, true)
	case actionEngage:
		ev, why := p.engage(r) //nolint:contextcheck // A connection outlives the reconcile that made it.
		return ev, why, nil
	case actionDisengage:
		p.disengage(r, ev)
	case actionOpenGate:
		p.openGate(r)
	case actionCloseGate:
		r.conn.transport.Allow(transport.ReadOnly)
		p.o.Gate.Close(r.name)
	case actionSwapToken:
		r.conn.swapToken(r.next)
		r.next = nil
		p.metrics.connectedBy(r.name, credentials.CauseToken)
	case actionDrain:
		p.startDrain(r, log.FromContext(ctx)) //nolint:contextcheck // So does a drain.
	case actionCancelDrain:
		p.cancelDrain(r)
	case actionRelease:
		p.release(r)
	case actionScheduleProbe, actionProbeNow, actionScheduleRetry, actionResetRetry, actionScheduleSettle:
		p.schedule(r, a)
	}
	return "", nil, nil
}

// schedule sets a time.
func (p *Provider) schedule(r *record, a action) {
	now := p.o.Clock.Now()
	switch {
	case a == actionProbeNow:
		r.probeAt = now
	case a == actionScheduleProbe && r.probeFailures == 1:
		r.probeAt = now.Add(jitter(min(secondProbe, p.o.ProbeInterval), p.o.Random()))
	case a == actionScheduleProbe && r.probedAt.IsZero():
		// The first: clusters that were connected together are not probed together.
		r.probeAt = now.Add(time.Duration(float64(p.o.ProbeInterval) * p.o.Random()))
	case a == actionScheduleProbe:
		r.probeAt = now.Add(jitter(p.o.ProbeInterval, p.o.Random()))
	case a == actionScheduleRetry && r.reason == ReasonOtherHub:
		// The other hub tells nobody when it releases the cluster.
		r.attempts++
		r.retryAt = now.Add(jitter(p.o.HubInterval, p.o.Random()))
	case a == actionScheduleRetry:
		r.attempts++
		if r.reason == ReasonPanicked {
			r.attempts += panicWeight - 1
		}
		r.retryAt = now.Add(backoff(r.attempts, p.o.BackoffBase, p.o.BackoffMax, p.o.Random()))
	case a == actionResetRetry:
		r.attempts, r.retryAt, r.settleAt = 0, time.Time{}, time.Time{}
	case a == actionScheduleSettle:
		r.settleAt = now.Add(p.o.SettlePeriod)
	}
}

// announce writes an event on the enrolled object when a change is worth one.
func (p *Provider) announce(old, now Cluster) {
	if p.o.Recorder == nil || (old.State == now.State && old.Reason == now.Reason) || now.State == StateConnecting {
		return
	}
	if old.State == "" && now.State == StatePending && now.Reason == ReasonConnecting {
		return
	}
	eventType := corev1.EventTypeNormal
	if now.State == StateDegraded || now.State == StateBackoff {
		eventType = corev1.EventTypeWarning
	}
	p.record(now.Enrolment.Object, eventType, now.Reason, now.Message)
}

func (p *Provider) record(o ObjectReference, eventType, reason, message string) {
	if p.o.Recorder == nil {
		return
	}
	apiVersion, kind := o.ToAPIVersionAndKind()
	ref := &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	p.o.Recorder.Eventf(ref, nil, eventType, reason, "Connect", "%s", message)
}
