// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// maxSteps is longer than any chain of steps. A worker that reaches it yields to others.
const maxSteps = 16

// Reconcile moves one enrolment as far as possible now.
func (p *Provider) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	var r *record
	defer func() {
		var waits [laneCount]bool
		if r != nil {
			waits = r.waits
		}
		p.lanes.settle(key, waits)
	}()
	s, ok := p.sources[key.Source]
	if !ok {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("there is no source %q", key.Source))
	}
	e, err := s.Describe(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
	if err != nil && !errors.Is(err, ErrNotEnrolled) {
		return reconcile.Result{}, fmt.Errorf("cannot describe the enrolment of cluster %q: %w", key, err)
	}
	// Make the record first: events that are not yet in the cache read by hold then find it and requeue its key.
	r = p.ensureRecord(key, e)
	if r != nil {
		r.waits = [laneCount]bool{}
	}
	var held *condition.Error
	if e != nil {
		if held, err = p.classes.admissionProblem(ctx, key, e); err != nil {
			return reconcile.Result{}, err
		}
	}
	if r == nil {
		p.identities.release(key)
		p.classes.quota.leave(key)
		return reconcile.Result{}, nil
	}
	if err := p.checkLeaving(ctx, r); err != nil {
		return reconcile.Result{}, err
	}
	if r, err = p.advance(ctx, r, e, held); r == nil || err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: lifecycle.WakeAfter(r.observe(e, p.o.Clock.Now(), p.o.NotReadyGracePeriod))}, nil
}

// advance performs the steps of an enrolment until it has to wait, and publishes its record; nil if it has ended.
func (p *Provider) advance(ctx context.Context, r *record, e *Enrolment, held *condition.Error) (*record, error) {
	for range maxSteps {
		p.take(ctx, r, e, held)
		d := lifecycle.Decide(r.observe(e, p.o.Clock.Now(), p.o.NotReadyGracePeriod))
		if d.Step == lifecycle.StepWait {
			break
		}
		if err := p.performGuarded(ctx, r, d); err != nil && !errors.Is(err, errBusy) { // Other steps may need no place.
			p.view.publish(r)
			return r, err
		}
		if r.state == StateRemoved {
			key := r.key
			if r = p.ensureRecord(key, e); r == nil { // A new object of the same name starts from scratch.
				p.classes.quota.leave(key)
				return r, nil
			}
		}
	}
	p.view.publish(r)
	return r, nil
}

// checkLeaving ends an enrolment without connecting to its cluster if the class would not let it enrol.
func (p *Provider) checkLeaving(ctx context.Context, r *record) error {
	if !r.leaving || !p.classes.required {
		return nil
	}
	why, err := p.classes.holdByClass(ctx, r.key, &r.enrolment)
	r.leaving = why == nil
	return err
}

// ensureRecord returns the record of a key, and creates it for a new enrolment; nil without an enrolment or a record.
// It updates the record's class. Only the worker that holds a key creates its record.
func (p *Provider) ensureRecord(key Key, e *Enrolment) *record {
	r := p.records.get(key)
	pin, pinned := p.records.getPin(key)
	switch {
	case e == nil && r == nil && pinned:
		// Its enrolment ended while no manager ran, or the manager ended before it was offboarded.
		r = p.newRecord(key, pin.enrolment(key))
		r.leaving = true
		p.records.add(r)
		p.view.publish(r)
	case e == nil:
	case r == nil:
		r = p.newRecord(key, e)
		if pinned && pin.ObjectUID == e.Object.UID {
			r.recorded = pin.Reason
		}
		p.records.add(r)
	default:
		p.records.setClass(r, e.Class)
	}
	if pinned {
		p.records.dropPin(key) // After it is published: see MayLeave.
	}
	return r
}

func (p *Provider) newRecord(key Key, e *Enrolment) *record {
	name, limits := key.ClusterName(), p.o.Limits.WithDefaults()
	return &record{
		key: key, name: name, class: e.Class, enrolment: *e, state: StatePending, reason: fleetv1alpha1.ReasonConnecting,
		health: metav1.ConditionUnknown, cause: causeFirst, hub: hubidentity.Owner{ID: p.o.Hub.ID},
		throttle: transport.NewThrottle(p.o.QPS, p.o.Burst, p.o.Clock, func(d time.Duration) { p.metrics.waited(name, d) }),
		events:   transport.NewRateLimiter(limits.Events, p.events),
		answers:  transport.NewRateLimiter(limits.Answers, p.answers),
	}
}

// take stores the source's description without acting on it. Another object under the same name is ignored: its
// enrolment gets its own record.
func (p *Provider) take(ctx context.Context, r *record, e *Enrolment, held *condition.Error) {
	r.unenrolled = e == nil || e.Object.UID != r.enrolment.Object.UID
	if r.unenrolled {
		return
	}
	r.enrolment, r.leaving = *e, false
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
		r.conflict = p.identities.claim(ctx, r, r.uid)
	}
}

// performGuarded calls perform. A panic ends the cluster's connection, or counts as a failed attempt to connect.
func (p *Provider) performGuarded(ctx context.Context, r *record, d lifecycle.Decision) error {
	noted := &atomic.Bool{}
	guarded := p.panics.guard(ctx, r, func() bool { return noted.CompareAndSwap(false, true) })
	if r.conn != nil {
		guarded = r.conn.transport.Guard()
	}
	err := guarded.Run("connecting", func() error { return p.perform(ctx, r, d) })
	if _, ok := errors.AsType[*guard.Panic](err); !ok {
		return err
	}
	if r.pending != nil {
		r.pending.close(panicFailure())
		r.pending = nil
	}
	switch {
	case r.conn != nil:
		r.conn.transport.SetPanicked() // It may have been made during perform.
	case r.state == StateConnecting:
		_, _, err := p.step(ctx, r, lifecycle.EventConnectFailed, panicFailure())
		return err
	default:
		p.schedule.set(r, lifecycle.ActionScheduleRetry)
	}
	return nil
}

// perform takes one step, and those that follow without a new decision.
func (p *Provider) perform(ctx context.Context, r *record, d lifecycle.Decision) error {
	ev, why, err := d.Event, (*condition.Error)(nil), error(nil)
	switch d.Step {
	case lifecycle.StepWait:
		return nil
	case lifecycle.StepEvent:
		if ev == lifecycle.EventLost {
			why = r.conn.lost()
		}
	case lifecycle.StepCheckCredentials:
		ev, why, err = p.checker.checkCredentials(ctx, r)
	case lifecycle.StepProbe:
		ev, why, err = p.checker.probe(ctx, r)
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

// step feeds an event to the state machine and performs its actions. An action with I/O returns the next event.
func (p *Provider) step(ctx context.Context, r *record, ev lifecycle.Event, why *condition.Error) (lifecycle.Event, *condition.Error, error) {
	from := r.state
	to, actions := lifecycle.Transition(from, ev)
	r.state = to
	r.describe(from, ev, why)
	if from != to || to.Engaged() && ev == lifecycle.EventConnected {
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

// act performs one action. Actions that contact a cluster return the next event.
func (p *Provider) act(ctx context.Context, r *record, a lifecycle.Action, ev lifecycle.Event) (lifecycle.Event, *condition.Error, error) {
	switch a {
	case lifecycle.ActionConnect:
		return p.connector.connect(ctx, r, false)
	case lifecycle.ActionConnectShadow:
		return p.connector.connect(ctx, r, true)
	case lifecycle.ActionEngage:
		ev, why := p.engager.engage(r) //nolint:contextcheck // A connection outlives the reconcile that made it.
		return ev, why, nil
	case lifecycle.ActionDisengage:
		p.engager.disengage(r, ev)
	case lifecycle.ActionOpenGate:
		p.engager.openGate(r)
	case lifecycle.ActionCloseGate:
		p.engager.closeGate(r)
	case lifecycle.ActionSwapToken:
		r.conn.swapToken(r.next)
		r.next = nil
		p.metrics.connectedBy(r.name, credentials.CauseToken)
	case lifecycle.ActionDrain:
		p.offboarding.start(r, log.FromContext(ctx)) //nolint:contextcheck // So does a drain.
	case lifecycle.ActionCancelDrain:
		p.offboarding.cancel(r)
	case lifecycle.ActionRelease:
		p.release(r)
	case lifecycle.ActionScheduleProbe, lifecycle.ActionProbeNow, lifecycle.ActionScheduleRetry, lifecycle.ActionResetRetry, lifecycle.ActionScheduleSettle:
		p.schedule.set(r, a)
	}
	return "", nil, nil
}

// release forgets an enrolment.
func (p *Provider) release(r *record) {
	p.records.remove(r)
	r.throttle.Retire()
	p.view.withdraw(r.name)
	p.metrics.forget(r.name)
	p.identities.release(r.key)
}
