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
	// StepCheckCredentials means: read the Secret again and compare.
	StepCheckCredentials Step = "CheckCredentials"
	// StepProbe means: ask the API server how it is.
	StepProbe Step = "Probe"
)

// Observation is all that a decision needs, and nothing that takes I/O to find out.
type Observation struct {
	Now   time.Time
	State State

	// Enrolled is whether the source described the enrolment, and SameObject whether its object is the one that is known.
	Enrolled, SameObject bool

	// Held says why the cluster must not be connected; empty if it may be. HeldSince is since when.
	Held      string
	HeldSince time.Time

	// Grace is how long a cluster that is engaged stays so although it is held. HeldAtOnce is whether it does not.
	Grace      time.Duration
	HeldAtOnce bool

	// Conflict is whether the identifier of the enrolment belongs to another one.
	Conflict bool

	// Changed is whether the enrolment differs from the one at the last attempt in more than the version of its Secret, or
	// somebody asked for an attempt.
	Changed bool

	// Lost is whether the cache stopped by itself, or something of the cluster made the manager panic. Drained is whether
	// nothing of it runs any more.
	Lost, Drained bool

	// CredentialsStale is whether the Secret has a version that was not looked at to the end, and CredentialsUnread
	// whether that was not even read.
	CredentialsStale, CredentialsUnread bool

	// RetryAt is when the next attempt may be made; zero for at once.
	RetryAt time.Time

	// SettleAt is when the connection will have lasted long enough to forget earlier failures; zero if that was done.
	SettleAt time.Time

	// ProbeAt is when the next probe is due.
	ProbeAt time.Time

	// ConnectWaits and ProbeWaits are whether there is no room to connect or to probe. The enrolment is woken when there
	// is.
	ConnectWaits, ProbeWaits bool

	// SuspectAt is when a request that was answered 401, or that needs the cluster to be claimed, is to be followed up;
	// zero if there was none.
	SuspectAt time.Time
}

// Decision is a step, and its event if that is the step.
type Decision struct {
	Step  Step
	Event Event
}

// Decide says what comes next. The order is the order of importance: what must stop at once, what must not go on, what
// is known for certain, and then what has to be asked.
func Decide(o Observation) Decision {
	held := o.mustHold()
	switch {
	case o.State == StateRemoved:
		return Decision{Step: StepWait}
	case o.Enrolled && !o.SameObject:
		return Decision{StepEvent, EventObjectReplaced}
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

// mustHold says whether what holds the enrolment takes effect: at once, unless a cluster is engaged and has a grace
// period.
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
		// A token that is rotated meanwhile is needed until the end.
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

// heldRecheck is how often what holds an enrolment is looked at although nothing says that it has changed. It costs
// reads of a cache, and bounds what an event that was missed could do.
const heldRecheck = 5 * time.Minute

// WakeAfter says after which time an enrolment that waits has to be looked at again; zero if only an event can change
// anything. What there is no room for has no time: there is an event when there is.
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
