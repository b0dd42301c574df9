// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"iter"
	"testing"
	"time"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
)

// observations are all combinations of what can be observed of an enrolment. Each time is in the past or in the future.
func observations() iter.Seq[Observation] {
	now := time.Unix(1_000, 0)
	past, future := now.Add(-time.Second), now.Add(time.Minute)
	retries, times := []time.Time{past, future}, []time.Time{{}, past, future}
	type holding struct {
		reason string
		grace  time.Duration
		atOnce bool
	}
	holdings := []holding{{}, {fleetv1alpha1.ReasonNotReady, time.Hour, false}, {fleetv1alpha1.ReasonNotReady, time.Millisecond, false}, {fleetv1alpha1.ReasonPaused, time.Hour, true}}
	return func(yield func(Observation) bool) {
		for _, state := range states() {
			for bits := range 1 << 11 {
				bit := func(n int) bool { return bits&(1<<n) != 0 }
				o := Observation{
					Now: now, State: state, Enrolled: bit(0), SameObject: bit(1), Leaving: bit(2), Conflict: bit(3), Changed: bit(4), Lost: bit(5),
					Drained: bit(6), CredentialsStale: bit(7), CredentialsUnread: bit(8), ConnectWaits: bit(9), ProbeWaits: bit(10),
				}
				if o.CredentialsUnread && !o.CredentialsStale {
					continue // What was not read is stale.
				}
				for _, h := range holdings {
					o.Held, o.HeldSince, o.Grace, o.HeldAtOnce = h.reason, past, h.grace, h.atOnce
					for _, o.RetryAt = range retries {
						for _, o.ProbeAt = range retries {
							for _, o.SettleAt = range times {
								for _, o.SuspectAt = range times {
									if !yield(o) {
										return
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// inGrace reports whether a cluster is held, and must stay engaged for now.
func (o Observation) inGrace() bool {
	return o.Held != "" && !o.HeldAtOnce && o.State.Engaged() && o.Now.Before(o.HeldSince.Add(o.Grace))
}

// isOurs reports whether the enrolment is for the object that is connected.
func (o Observation) isOurs() bool { return o.Enrolled && o.SameObject }

// comesToRest reports whether the machine comes to rest with one observation, without anything else happening.
func comesToRest(o Observation) bool {
	for range len(states()) {
		d := Decide(o)
		if d.Step != StepEvent {
			return true
		}
		var actions []Action
		o.State, actions = Transition(o.State, d.Event)
		for _, a := range actions {
			switch a { //nolint:exhaustive // The others change nothing that Decide observes.
			case ActionConnect:
				return true // Its end is another event.
			case ActionDisengage:
				o.Lost = false
			case ActionDrain, ActionCancelDrain:
				o.Drained = false
			case ActionResetRetry:
				o.SettleAt = time.Time{}
			}
		}
	}
	return false
}

// isWoken reports whether a waiting enrolment is woken when time alone changes its decision. Settling waits for the
// next probe.
func isWoken(o Observation) bool {
	after := o
	for _, after.Now = range []time.Time{o.RetryAt, o.ProbeAt, o.SuspectAt, o.HeldSince.Add(o.Grace)} {
		if !after.Now.After(o.Now) {
			continue
		}
		d := Decide(after)
		if d.Step == StepWait || d.Event == EventSettled {
			continue
		}
		if wake := WakeAfter(o); wake == 0 || o.Now.Add(wake).After(after.Now) {
			return false
		}
	}
	return true
}

// TestDecideExhaustive checks what is never decided, in every situation. What is decided is in TestDecide.
func TestDecideExhaustive(t *testing.T) {
	event := func(o Observation, events ...Event) bool {
		d := Decide(o)
		for _, e := range events {
			if d.Step == StepEvent && d.Event == e {
				return true
			}
		}
		return false
	}
	connects := func(o Observation) bool {
		return event(o, EventRetry) || event(o, EventWanted) && o.State != StateDraining
	}
	exhaustive.Check(t, observations(), []exhaustive.Property[Observation]{
		{
			Sentence: "Only what is enrolled and not held is connected, or what is to be offboarded.",
			When:     connects,
			Holds:    func(o Observation) bool { return o.isOurs() && o.Held == "" || !o.Enrolled && o.Leaving },
		},
		{
			Sentence: "Nothing is connected without a place.",
			When:     connects, Holds: func(o Observation) bool { return !o.ConnectWaits },
		},
		{
			Sentence: "A back-off ends when its time comes, or when a change justifies it.",
			When:     func(o Observation) bool { return o.State == StateBackoff && connects(o) },
			Holds:    func(o Observation) bool { return !o.Now.Before(o.RetryAt) || o.Changed && o.Enrolled },
		},
		{
			Sentence: "Another object of the same name ends the connection of its predecessor before anything else.",
			When:     func(o Observation) bool { return o.Enrolled && !o.SameObject && o.State != StateRemoved },
			Holds:    func(o Observation) bool { return event(o, EventObjectReplaced) },
		},
		{
			Sentence: "Only a connected cluster is probed, when it is due and there is a place.",
			When:     func(o Observation) bool { return Decide(o).Step == StepProbe },
			Holds: func(o Observation) bool {
				return (o.State == StateConnected || o.State == StateDegraded) && !o.ProbeWaits && !o.Now.Before(o.ProbeAt) && o.isOurs()
			},
		},
		{
			Sentence: "Within the grace period a held cluster stays engaged, unless it is drained already.",
			When: func(o Observation) bool {
				return o.inGrace() && o.isOurs() && !o.Lost && !o.Conflict && o.State != StateDraining
			},
			Holds: func(o Observation) bool {
				d := Decide(o)
				to, _ := Transition(o.State, d.Event)
				return d.Step != StepEvent || to.Engaged() && to != StateDraining
			},
		},
		{
			Sentence: "What must not be connected is let go at once, and drained first if it is engaged.",
			When: func(o Observation) bool {
				return o.isOurs() && o.Held != "" && !o.inGrace() && o.State != StatePending && o.State != StateDraining && o.State != StateRemoved
			},
			Holds: func(o Observation) bool { return event(o, EventHeld) },
		},
		{
			Sentence: "What is enrolled no more is let go, unless it is connected to be offboarded.",
			When:     func(o Observation) bool { return !o.Enrolled && o.State.Engaged() && o.State != StateDraining },
			Holds:    func(o Observation) bool { return event(o, EventUnenrolled) },
		},
		{
			Sentence: "What was lost is not served: it is disengaged, or drained and then disengaged.",
			When:     func(o Observation) bool { return o.Lost && o.State.Engaged() },
			Holds: func(o Observation) bool {
				d := Decide(o)
				to, _ := Transition(o.State, d.Event)
				if to == StateDraining {
					o.State = to
					to, _ = Transition(to, Decide(o).Event)
				}
				return d.Step == StepEvent && !to.Engaged()
			},
		},
		{
			Sentence: "A cluster whose identifier is another's is let go.",
			When: func(o Observation) bool {
				return o.Conflict && o.isOurs() && o.State.Engaged() && o.State != StateDraining
			},
			Holds: func(o Observation) bool { return event(o, EventRefused, EventLost, EventHeld) },
		},
		{
			Sentence: "A cluster in conflict with another is not wanted again.",
			When:     func(o Observation) bool { return o.Conflict && o.State.Engaged() },
			Holds:    func(o Observation) bool { return !event(o, EventWanted) },
		},
		{
			Sentence: "A drain ends only when it is complete, lost, replaced, or called off for a cluster that may be connected.",
			When:     func(o Observation) bool { return o.State == StateDraining && Decide(o).Step == StepEvent },
			Holds: func(o Observation) bool {
				return event(o, EventDrained) && o.Drained || event(o, EventLost) && o.Lost || event(o, EventObjectReplaced) && !o.SameObject ||
					event(o, EventWanted) && o.isOurs() && (o.Held == "" || o.inGrace())
			},
		},
		{
			Sentence: "Every event that is decided means something in its state.",
			When:     func(o Observation) bool { return Decide(o).Step == StepEvent },
			Holds: func(o Observation) bool {
				to, actions := Transition(o.State, Decide(o).Event)
				return to != o.State || len(actions) > 0
			},
		},
		{
			Sentence: "With one observation the machine comes to rest.",
			Holds:    comesToRest,
		},
		{
			Sentence: "What waits for a time is woken then.",
			When:     func(o Observation) bool { return Decide(o).Step == StepWait },
			Holds:    isWoken,
		},
		{
			Sentence: "What is removed stays so.",
			When:     func(o Observation) bool { return o.State == StateRemoved },
			Holds:    func(o Observation) bool { return Decide(o).Step == StepWait && WakeAfter(o) == 0 },
		},
	})
}
