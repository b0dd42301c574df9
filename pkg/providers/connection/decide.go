// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"time"
)

// A step is what the reconciler does next for an enrolment.
type step string

const (
	// stepWait: nothing, until something happens or time passes.
	stepWait step = "Wait"
	// stepEvent: feed an event to the machine.
	stepEvent step = "Event"
	// stepCheckCredentials: read the Secret again and compare.
	stepCheckCredentials step = "CheckCredentials"
	// stepProbe: ask the API server how it is.
	stepProbe step = "Probe"
)

// observation is all that a decision needs, and nothing that takes I/O to find out.
type observation struct {
	now   time.Time
	state State

	// enrolled: the source described the enrolment. sameObject: its object is the one that is known.
	enrolled, sameObject bool
	// held says why it must not be connected, or is empty. heldAtOnce: the grace period does not apply. heldSince: since
	// when.
	held       string
	heldAtOnce bool
	heldSince  time.Time
	grace      time.Duration
	// conflict: the identifier that the enrolment asks for now belongs to another.
	conflict bool
	// changed: the enrolment differs from the one at the last attempt in more than the version of its Secret, or somebody
	// asked for an attempt.
	changed bool

	// lost: the cache stopped by itself, or something of the cluster made the manager panic. drained: nothing runs any
	// more.
	lost, drained bool
	// credentialsStale: the Secret has a version that was not looked at to the end. credentialsUnread: not even read.
	// retryAt: not before then, zero for at once.
	credentialsStale, credentialsUnread bool
	retryAt                             time.Time
	// settleAt is when the connection will have lasted long enough to forget earlier failures; zero if that was done.
	settleAt time.Time
	// probeAt is when the next probe is due.
	probeAt time.Time
	// connectWaits, probeWaits: there is no room to connect or to probe, and it will be woken when there is.
	connectWaits, probeWaits bool
	// suspectAt is when a request that was answered 401, or that needs the cluster to be claimed, is to be followed up;
	// zero if there was none.
	suspectAt time.Time
}

// decision is a step, and its event if that is the step.
type decision struct {
	step  step
	event event
}

// decide says what comes next. The order is the order of importance: what must stop at once, what must not go on, what
// is known for certain, and then what has to be asked.
func decide(o observation) decision {
	held := o.mustHold()
	switch {
	case o.state == StateRemoved:
		return decision{step: stepWait}
	case o.enrolled && !o.sameObject:
		return decision{stepEvent, eventObjectReplaced}
	case !o.enrolled && o.state != StateDraining:
		return decision{stepEvent, eventUnenrolled}
	case o.state == StateDraining:
		return decideDraining(o, held)
	case held && o.state != StatePending:
		return decision{stepEvent, eventHeld}
	case o.state == StatePending && !held && !o.connectWaits:
		return decision{stepEvent, eventWanted}
	case o.state == StateBackoff:
		return decideBackoff(o)
	case o.state.Engaged():
		return decideEngaged(o)
	default:
		return decision{step: stepWait}
	}
}

func decideBackoff(o observation) decision {
	switch {
	case !o.connectWaits && (o.changed || !o.now.Before(o.retryAt)):
		return decision{stepEvent, eventRetry}
	case o.credentialsUnread:
		return decision{step: stepCheckCredentials}
	default:
		return decision{step: stepWait}
	}
}

// mustHold says whether what holds the enrolment takes effect: at once, unless a cluster is engaged and has a grace
// period.
func (o observation) mustHold() bool {
	if o.held == "" {
		return false
	}
	return o.heldAtOnce || !o.state.Engaged() || !o.now.Before(o.heldSince.Add(o.grace))
}

func decideDraining(o observation, held bool) decision {
	switch {
	case o.lost:
		return decision{stepEvent, eventLost}
	case o.drained:
		return decision{stepEvent, eventDrained}
	case o.enrolled && !held && !o.conflict:
		return decision{stepEvent, eventWanted}
	case o.credentialsUnread, !o.suspectAt.IsZero() && !o.now.Before(o.suspectAt):
		// A token that is rotated meanwhile is needed until the end.
		return decision{step: stepCheckCredentials}
	default:
		return decision{step: stepWait}
	}
}

func decideEngaged(o observation) decision {
	switch {
	case o.lost:
		return decision{stepEvent, eventLost}
	case o.conflict:
		return decision{stepEvent, eventRefused}
	case o.state == StateConnected && !o.settleAt.IsZero() && !o.now.Before(o.settleAt):
		return decision{stepEvent, eventSettled}
	case o.credentialsStale && !o.connectWaits && !o.probeWaits && (o.credentialsUnread || !o.now.Before(o.retryAt)):
		return decision{step: stepCheckCredentials}
	case !o.probeWaits && !o.now.Before(o.probeAt):
		return decision{step: stepProbe}
	default:
		return decision{step: stepWait}
	}
}

// heldRecheck is how often what holds an enrolment is looked at although nothing says that it has changed. It costs
// reads of a cache, and bounds what an event that was missed could do.
const heldRecheck = 5 * time.Minute

// wakeAfter says after which time an enrolment that waits has to be looked at again; zero if only an event can change
// anything. What there is no room for has no time: there is an event when there is.
func wakeAfter(o observation) time.Duration {
	var at []time.Time
	switch o.state {
	case StateBackoff:
		if !o.connectWaits {
			at = append(at, o.retryAt)
		}
	case StatePending:
		if o.held != "" {
			return heldRecheck
		}
	case StateDraining:
		if !o.suspectAt.IsZero() {
			at = append(at, o.suspectAt)
		}
	case StateConnecting, StateRemoved:
	case StateConnected, StateDegraded:
		if !o.probeWaits {
			at = append(at, o.probeAt)
		}
		if o.credentialsStale && !o.connectWaits && !o.probeWaits {
			at = append(at, o.retryAt)
		}
		if o.held != "" {
			at = append(at, o.heldSince.Add(o.grace))
		}
	}
	if len(at) == 0 {
		return 0
	}
	return max(slices.MinFunc(at, time.Time.Compare).Sub(o.now), time.Millisecond)
}
