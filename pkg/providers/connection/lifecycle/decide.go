// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
)

// A Step is what the reconciler does next for an enrolment.
type Step string

const (
	// StepWait means: nothing, until something happens or time passes.
	StepWait Step = "Wait"
	// StepEvent means: feed an event to the machine.
	StepEvent Step = "Event"
	// StepCheckCredentials means: re-read the Secret and compare.
	StepCheckCredentials Step = "CheckCredentials"
	// StepProbe means: probe the API server.
	StepProbe Step = "Probe"
)

// Observation is the input of Decide. Gathering it takes no I/O.
type Observation struct {
	Now   time.Time
	State State

	// Enrolled reports whether the source describes the enrolment, and SameObject whether its object is unchanged.
	Enrolled, SameObject bool

	// Leaving reports whether an enrolment that has ended is connected to be offboarded.
	Leaving bool

	// Held is why the cluster must not be connected; empty if it may be. HeldSince is the start.
	Held      string
	HeldSince time.Time

	// Grace is how long a held cluster stays engaged. HeldAtOnce means without grace.
	Grace      time.Duration
	HeldAtOnce bool

	// Conflict reports whether another enrolment holds the identifier of this one.
	Conflict bool

	// Changed reports whether the enrolment differs from the last attempt's in more than the version of its Secret, or an
	// attempt was requested.
	Changed bool

	// Lost reports whether the cluster's data made the manager panic. Drained reports
	// whether the drain is complete.
	Lost, Drained bool

	// CredentialsStale reports whether the Secret has a version that was not fully processed, and CredentialsUnread
	// whether that was not even read.
	CredentialsStale, CredentialsUnread bool

	// RetryAt is when the next attempt may be made; zero for at once.
	RetryAt time.Time

	// SettleAt is when the connection will have lasted long enough to reset the back-off; zero if already done.
	SettleAt time.Time

	// ProbeAt is when the next probe is due.
	ProbeAt time.Time

	// ConnectWaits and ProbeWaits report whether no place to connect or to probe is free. The enrolment is requeued when
	// one is.
	ConnectWaits, ProbeWaits bool

	// SuspectAt is when to follow up a request that was answered 401, or that needs the cluster to be claimed; zero if
	// none.
	SuspectAt time.Time
}

// Decision is a step, and the event of a StepEvent.
type Decision struct {
	Step  Step
	Event Event
}

// Decide returns the next step, in order of importance: what must stop at once, what must not continue, what is known
// for certain, and then what needs a request.
func Decide(o Observation) Decision {
	held := o.mustHold()
	switch {
	case o.State == StateRemoved:
		return Decision{Step: StepWait}
	case o.Enrolled && !o.SameObject:
		return Decision{StepEvent, EventObjectReplaced}
	case o.connectsToLeave():
		return decideLeaving(o)
	case !o.Enrolled && o.State != StateDraining:
		return Decision{StepEvent, EventUnenrolled}
	case o.State == StateDraining:
		return decideDraining(o, held)
	case held && o.State != StatePending:
		return Decision{StepEvent, EventHeld}
	case o.State == StatePending && !held && !o.ConnectWaits:
		return Decision{StepEvent, EventWanted}
	case o.State == StateBackoff:
		return decideBackoff(o)
	case o.State.Engaged():
		return decideEngaged(o)
	default:
		return Decision{Step: StepWait}
	}
}

// connectsToLeave reports whether an enrolment that has ended is yet to be connected, to be offboarded.
func (o Observation) connectsToLeave() bool {
	return o.Leaving && !o.Enrolled && !o.State.Engaged() && o.State != StateDraining
}

func decideLeaving(o Observation) Decision {
	switch {
	case o.State == StatePending && !o.ConnectWaits:
		return Decision{StepEvent, EventWanted}
	case o.State == StateBackoff && !o.ConnectWaits && !o.Now.Before(o.RetryAt):
		return Decision{StepEvent, EventRetry}
	default:
		return Decision{Step: StepWait}
	}
}

func decideBackoff(o Observation) Decision {
	switch {
	case !o.ConnectWaits && (o.Changed || !o.Now.Before(o.RetryAt)):
		return Decision{StepEvent, EventRetry}
	case o.CredentialsUnread:
		return Decision{Step: StepCheckCredentials}
	default:
		return Decision{Step: StepWait}
	}
}

// mustHold reports whether a hold takes effect now: at once, unless the cluster is engaged and within a grace period.
func (o Observation) mustHold() bool {
	if o.Held == "" {
		return false
	}
	return o.HeldAtOnce || !o.State.Engaged() || !o.Now.Before(o.HeldSince.Add(o.Grace))
}

func decideDraining(o Observation, held bool) Decision {
	switch {
	case o.Lost:
		return Decision{StepEvent, EventLost}
	case o.Drained:
		return Decision{StepEvent, EventDrained}
	case o.Enrolled && !held && !o.Conflict:
		return Decision{StepEvent, EventWanted}
	case o.CredentialsUnread, !o.SuspectAt.IsZero() && !o.Now.Before(o.SuspectAt):
		// The drain needs a token that is rotated meanwhile.
		return Decision{Step: StepCheckCredentials}
	default:
		return Decision{Step: StepWait}
	}
}

func decideEngaged(o Observation) Decision {
	switch {
	case o.Lost:
		return Decision{StepEvent, EventLost}
	case o.Conflict:
		return Decision{StepEvent, EventRefused}
	case o.State == StateConnected && !o.SettleAt.IsZero() && !o.Now.Before(o.SettleAt):
		return Decision{StepEvent, EventSettled}
	case o.CredentialsStale && !o.ConnectWaits && !o.ProbeWaits && (o.CredentialsUnread || !o.Now.Before(o.RetryAt)):
		return Decision{Step: StepCheckCredentials}
	case !o.ProbeWaits && !o.Now.Before(o.ProbeAt):
		return Decision{Step: StepProbe}
	default:
		return Decision{Step: StepWait}
	}
}

// heldRecheck is how often a held enrolment is rechecked without an event. It costs only cache reads, and bounds the
// effect of a missed event.
const heldRecheck = 5 * time.Minute

// WakeAfter returns when to requeue a waiting enrolment; zero if only an event can change anything. Steps that wait for
// a place need no time: a free place is an event.
func WakeAfter(o Observation) time.Duration {
	var at []time.Time
	switch o.State {
	case StateBackoff:
		if !o.ConnectWaits {
			at = append(at, o.RetryAt)
		}
	case StatePending:
		if o.Held != "" {
			return heldRecheck
		}
	case StateDraining:
		if !o.SuspectAt.IsZero() {
			at = append(at, o.SuspectAt)
		}
	case StateConnecting, StateRemoved:
	case StateConnected, StateDegraded:
		if !o.ProbeWaits {
			at = append(at, o.ProbeAt)
		}
		if o.CredentialsStale && !o.ConnectWaits && !o.ProbeWaits {
			at = append(at, o.RetryAt)
		}
		if o.Held != "" {
			at = append(at, o.HeldSince.Add(o.Grace))
		}
	}
	if len(at) == 0 {
		return 0
	}
	return max(slices.MinFunc(at, time.Time.Compare).Sub(o.Now), time.Millisecond)
}
