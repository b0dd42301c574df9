// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

type edge struct {
	State State
	Event Event
}

type target struct {
	reason  string
	to      State
	actions []Action
}

// changes lists every pair of a state and an event that changes something. TestTransition verifies that all others
// change nothing, so that together they define what every state does on every event.
func changes() map[edge]target {
	connected := []Action{ActionOpenGate, ActionEngage, ActionScheduleSettle, ActionScheduleProbe}
	gone := []Action{ActionRelease}
	goneAtOnce := []Action{ActionCancelDrain, ActionDisengage, ActionRelease}
	lost := []Action{ActionDisengage, ActionScheduleRetry}
	down := []Action{ActionCancelDrain, ActionDisengage, ActionResetRetry}
	drain := []Action{ActionDrain}
	m := map[edge]target{
		{StatePending, EventWanted}:         {"All that is needed is there.", StateConnecting, []Action{ActionConnect}},
		{StatePending, EventUnenrolled}:     {"Nothing was connected: nothing to drain.", StateRemoved, gone},
		{StatePending, EventObjectReplaced}: {"The new object starts with a new record.", StateRemoved, gone},

		{StateConnecting, EventConnected}:      {"The gate opens before the initial list arrives, else it is dropped.", StateConnected, connected},
		{StateConnecting, EventConnectFailed}:  {"Tried again after a back-off.", StateBackoff, []Action{ActionScheduleRetry}},
		{StateConnecting, EventRefused}:        {"A duplicate, the hub, or another cluster than before: nothing is engaged.", StateBackoff, []Action{ActionScheduleRetry}},
		{StateConnecting, EventHeld}:           {"It is not to be connected after all.", StatePending, nil},
		{StateConnecting, EventUnenrolled}:     {"Nothing is connected yet: nothing to drain.", StateRemoved, gone},
		{StateConnecting, EventObjectReplaced}: {"The new object starts with a new record.", StateRemoved, gone},

		{StateBackoff, EventRetry}:          {"The back-off has passed.", StateConnecting, []Action{ActionConnect}},
		{StateBackoff, EventHeld}:           {"Trying is pointless while it is paused or not ready; that ends no back-off.", StatePending, nil},
		{StateBackoff, EventUnenrolled}:     {"Nothing is connected: nothing to drain.", StateRemoved, gone},
		{StateBackoff, EventObjectReplaced}: {"The new object starts with a new record, and without the back-off.", StateRemoved, gone},

		{StateConnected, EventProbeSucceeded}: {"All is well.", StateConnected, []Action{ActionScheduleProbe}},
		{StateConnected, EventSettled}:        {"It has lasted: earlier failures are forgotten.", StateConnected, []Action{ActionResetRetry}},
		{StateConnected, EventProbeFailed}:    {"The first failure holds work and writes.", StateDegraded, []Action{ActionCloseGate, ActionScheduleProbe}},
		{StateDegraded, EventProbeSucceeded}:  {"It is back: nothing is engaged again.", StateConnected, []Action{ActionOpenGate, ActionScheduleProbe}},
		{StateDegraded, EventProbeFailed}:     {"Not often enough yet.", StateDegraded, []Action{ActionScheduleProbe}},

		{StateDraining, EventWanted}:         {"Called off; the gate opens after a probe.", StateDegraded, []Action{ActionCancelDrain, ActionCloseGate, ActionProbeNow}},
		{StateDraining, EventTokenChanged}:   {"A cluster is offboarded with the token that is accepted.", StateDraining, []Action{ActionSwapToken}},
		{StateDraining, EventDrained}:        {"No work runs any more, or the time is over.", StatePending, down},
		{StateDraining, EventLost}:           {"There is nothing left to wait for.", StatePending, down},
		{StateDraining, EventObjectReplaced}: {"The successor must not wait for, nor be served by, the predecessor.", StateRemoved, goneAtOnce},
	}
	for _, s := range []State{StateConnected, StateDegraded} {
		m[edge{s, EventLost}] = target{"Of no use any more: disengaged, and tried again later.", StateBackoff, lost}
		m[edge{s, EventTokenChanged}] = target{"Swapped in place: no informer restarts.", s, []Action{ActionSwapToken, ActionProbeNow}}
		m[edge{s, EventEndpointChanged}] = target{"Make before break.", s, []Action{ActionConnectShadow}}
		m[edge{s, EventConnected}] = target{"The shadow takes over.", StateConnected, connected}
		m[edge{s, EventConnectFailed}] = target{"The shadow failed: what serves goes on.", s, []Action{ActionScheduleRetry}}
		m[edge{s, EventHeld}] = target{"Paused, or not ready for longer than the grace period.", StateDraining, drain}
		m[edge{s, EventRefused}] = target{"It now claims an identifier that belongs to another.", StateDraining, drain}
		m[edge{s, EventUnenrolled}] = target{"Work that runs may end.", StateDraining, drain}
		m[edge{s, EventObjectReplaced}] = target{"Not drained: the successor must never be served by this connection.", StateRemoved, goneAtOnce}
	}
	return m
}

// states are all states.
func states() []State {
	return []State{StatePending, StateConnecting, StateConnected, StateDegraded, StateBackoff, StateDraining, StateRemoved}
}

// events are all events.
func events() []Event {
	return []Event{
		EventWanted, EventHeld, EventUnenrolled, EventObjectReplaced, EventRefused, EventRetry, EventConnected, EventConnectFailed,
		EventProbeSucceeded, EventProbeFailed, EventLost, EventTokenChanged, EventEndpointChanged, EventSettled, EventDrained,
	}
}

func TestTransition(t *testing.T) {
	table := changes()
	for _, s := range states() {
		for _, e := range events() {
			t.Run(string(s)+"/"+string(e), func(t *testing.T) {
				want, ok := table[edge{s, e}]
				if !ok {
					want = target{reason: "It means nothing in this state, and must change nothing.", to: s}
				}
				to, actions := Transition(s, e)
				if to != want.to {
					t.Errorf("%s\nwant state %s, got %s", want.reason, want.to, to)
				}
				if diff := cmp.Diff(want.actions, actions); diff != "" {
					t.Errorf("%s\n-want actions +got actions:\n%s", want.reason, diff)
				}
			})
		}
	}
}

// TestTransitionKeepsItsWord verifies rules for all edges, so that a new edge cannot break one unnoticed.
func TestTransitionKeepsItsWord(t *testing.T) {
	for _, s := range states() {
		for _, e := range events() {
			to, actions := Transition(s, e)
			has := map[Action]bool{}
			for _, a := range actions {
				has[a] = true
			}
			if s.Engaged() && !to.Engaged() && !has[ActionDisengage] {
				t.Errorf("%s on %s: leaves the engaged states without disengaging", s, e)
			}
			if !s.Engaged() && to.Engaged() && !has[ActionEngage] {
				t.Errorf("%s on %s: enters an engaged state without engaging", s, e)
			}
			if to == StateRemoved && s != StateRemoved && !has[ActionRelease] {
				t.Errorf("%s on %s: is removed without a release", s, e)
			}
			if to == StateBackoff && s != StateBackoff && !has[ActionScheduleRetry] {
				t.Errorf("%s on %s: backs off without an end", s, e)
			}
			if s == StateDraining && to != StateDraining && !has[ActionCancelDrain] {
				t.Errorf("%s on %s: leaves a drain running", s, e)
			}
		}
	}
}

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	cases := map[string]struct {
		reason string
		o      Observation
		want   Decision
	}{
		"Pending":                   {"Nothing holds it.", Observation{State: StatePending, Enrolled: true, SameObject: true}, Decision{StepEvent, EventWanted}},
		"PendingHeld":               {"It stays pending as long as something is missing.", Observation{State: StatePending, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: now, Grace: time.Hour}, Decision{Step: StepWait}},
		"PendingGone":               {"It is forgotten.", Observation{State: StatePending}, Decision{StepEvent, EventUnenrolled}},
		"LeavingPending":            {"It is connected to be offboarded.", Observation{State: StatePending, Leaving: true}, Decision{StepEvent, EventWanted}},
		"LeavingBackoff":            {"It is tried again.", Observation{State: StateBackoff, Leaving: true, RetryAt: before}, Decision{StepEvent, EventRetry}},
		"LeavingBacksOff":           {"Its time has not come.", Observation{State: StateBackoff, Leaving: true, RetryAt: after}, Decision{Step: StepWait}},
		"LeavingWithoutAPlace":      {"A place is an event.", Observation{State: StatePending, Leaving: true, ConnectWaits: true}, Decision{Step: StepWait}},
		"LeavingConnected":          {"It is offboarded.", Observation{State: StateConnected, Leaving: true}, Decision{StepEvent, EventUnenrolled}},
		"LeavingEnrolledAgain":      {"It is as any other.", Observation{State: StateBackoff, Leaving: true, Enrolled: true, SameObject: true, RetryAt: after}, Decision{Step: StepWait}},
		"ReplacedBeatsAll":          {"Another object of the same name comes before everything else.", Observation{State: StateConnected, Enrolled: true, Held: fleetv1alpha1.ReasonPaused, HeldAtOnce: true, Lost: true}, Decision{StepEvent, EventObjectReplaced}},
		"ReplacedWhileDraining":     {"The successor does not wait.", Observation{State: StateDraining, Enrolled: true}, Decision{StepEvent, EventObjectReplaced}},
		"BackoffWaits":              {"Its time has not come.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: after}, Decision{Step: StepWait}},
		"BackoffOver":               {"Its time has come.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: now}, Decision{StepEvent, EventRetry}},
		"BackoffChanged":            {"What changed makes waiting pointless.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: after, Changed: true}, Decision{StepEvent, EventRetry}},
		"BackoffHeld":               {"No grace without a connection.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: now, Grace: time.Hour, RetryAt: before}, Decision{StepEvent, EventHeld}},
		"ConnectedInGrace":          {"It is kept for the grace period.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: before, Grace: time.Minute, ProbeAt: after}, Decision{Step: StepWait}},
		"ConnectedProbedInGrace":    {"And probed as ever.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: before, Grace: time.Minute, ProbeAt: before}, Decision{Step: StepProbe}},
		"ConnectedAfterGrace":       {"The grace period is over.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: now.Add(-time.Minute), Grace: time.Minute, ProbeAt: after}, Decision{StepEvent, EventHeld}},
		"ConnectedPaused":           {"Pausing takes effect at once.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonPaused, HeldAtOnce: true, HeldSince: now, Grace: time.Hour, ProbeAt: after}, Decision{StepEvent, EventHeld}},
		"ConnectedGone":             {"Drained first.", Observation{State: StateConnected}, Decision{StepEvent, EventUnenrolled}},
		"ConnectedConflict":         {"It claims what belongs to another.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Conflict: true, ProbeAt: after}, Decision{StepEvent, EventRefused}},
		"ConnectedStopped":          {"The cache ended by itself.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Lost: true, ProbeAt: after}, Decision{StepEvent, EventLost}},
		"ConnectedStale":            {"A changed Secret comes before a probe.", Observation{State: StateConnected, Enrolled: true, SameObject: true, CredentialsStale: true, ProbeAt: before}, Decision{Step: StepCheckCredentials}},
		"ConnectedStaleBacksOff":    {"Changed credentials that did not work wait for their turn.", Observation{State: StateConnected, Enrolled: true, SameObject: true, CredentialsStale: true, RetryAt: after, ProbeAt: after}, Decision{Step: StepWait}},
		"ConnectedStaleUnread":      {"Newer ones are looked at, at least.", Observation{State: StateConnected, Enrolled: true, SameObject: true, CredentialsStale: true, CredentialsUnread: true, RetryAt: after, ProbeAt: after}, Decision{Step: StepCheckCredentials}},
		"ConnectedStaleNoRoom":      {"A probe does not wait for the room that a new connection needs.", Observation{State: StateConnected, Enrolled: true, SameObject: true, CredentialsStale: true, ConnectWaits: true, ProbeAt: before}, Decision{Step: StepProbe}},
		"ConnectedNoRoom":           {"There is no room for a probe.", Observation{State: StateConnected, Enrolled: true, SameObject: true, ProbeWaits: true, ProbeAt: before}, Decision{Step: StepWait}},
		"ConnectedNoRoomHeld":       {"What takes no room happens all the same.", Observation{State: StateConnected, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonPaused, HeldAtOnce: true, ConnectWaits: true, ProbeWaits: true}, Decision{StepEvent, EventHeld}},
		"PendingNoRoom":             {"There is no room to connect.", Observation{State: StatePending, Enrolled: true, SameObject: true, ConnectWaits: true}, Decision{Step: StepWait}},
		"BackoffNoRoom":             {"There is no room to try again.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: before, ConnectWaits: true}, Decision{Step: StepWait}},
		"BackoffTouched":            {"A Secret that was touched is read, which ends no back-off.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: after, CredentialsStale: true, CredentialsUnread: true}, Decision{Step: StepCheckCredentials}},
		"BackoffStaleRead":          {"And only once.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: after, CredentialsStale: true}, Decision{Step: StepWait}},
		"BackoffOverTouched":        {"An attempt reads it anyway.", Observation{State: StateBackoff, Enrolled: true, SameObject: true, RetryAt: now, CredentialsUnread: true}, Decision{StepEvent, EventRetry}},
		"ConnectedUnsettled":        {"It has not lasted yet.", Observation{State: StateConnected, Enrolled: true, SameObject: true, SettleAt: after, ProbeAt: after}, Decision{Step: StepWait}},
		"ConnectedSettled":          {"It has lasted.", Observation{State: StateConnected, Enrolled: true, SameObject: true, SettleAt: now, ProbeAt: after}, Decision{StepEvent, EventSettled}},
		"DegradedNeverSettles":      {"That it was connected long ago says nothing about now.", Observation{State: StateDegraded, Enrolled: true, SameObject: true, SettleAt: before, ProbeAt: after}, Decision{Step: StepWait}},
		"DegradedProbeDue":          {"Degraded clusters are probed, too.", Observation{State: StateDegraded, Enrolled: true, SameObject: true, ProbeAt: now}, Decision{Step: StepProbe}},
		"DrainingWaits":             {"Work still runs.", Observation{State: StateDraining}, Decision{Step: StepWait}},
		"DrainingDone":              {"None does.", Observation{State: StateDraining, Drained: true}, Decision{StepEvent, EventDrained}},
		"DrainingDoneThoughWanted":  {"Once drained, it is too late to call it off.", Observation{State: StateDraining, Enrolled: true, SameObject: true, Drained: true}, Decision{StepEvent, EventDrained}},
		"DrainingWanted":            {"The label is back.", Observation{State: StateDraining, Enrolled: true, SameObject: true}, Decision{StepEvent, EventWanted}},
		"DrainingWantedConflicting": {"What was drained for a conflict is not wanted while there is a conflict.", Observation{State: StateDraining, Enrolled: true, SameObject: true, Conflict: true}, Decision{Step: StepWait}},
		"DrainingHeld":              {"Nor is what is paused.", Observation{State: StateDraining, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonPaused, HeldAtOnce: true}, Decision{Step: StepWait}},
		"DrainingToken":             {"A rotated token is needed until the end.", Observation{State: StateDraining, Enrolled: true, SameObject: true, Held: fleetv1alpha1.ReasonPaused, HeldAtOnce: true, CredentialsStale: true, CredentialsUnread: true}, Decision{Step: StepCheckCredentials}},
		"DrainingUnauthorized":      {"Of one that is not enrolled, only a 401 tells.", Observation{State: StateDraining, SuspectAt: now}, Decision{Step: StepCheckCredentials}},
		"DrainingUnauthorizedLater": {"Not again and again.", Observation{State: StateDraining, SuspectAt: after}, Decision{Step: StepWait}},
		"DrainingStopped":           {"There is nothing to wait for.", Observation{State: StateDraining, Lost: true}, Decision{StepEvent, EventLost}},
		"Removed":                   {"It is over.", Observation{State: StateRemoved, Enrolled: true, SameObject: true}, Decision{Step: StepWait}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Now = now
			if got := Decide(tc.o); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestWakeAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	cases := map[string]struct {
		reason string
		o      Observation
		want   time.Duration
	}{
		"Pending":              {"Only an event changes anything.", Observation{State: StatePending}, 0},
		"PendingHeld":          {"Looked at again, should an event be missed.", Observation{State: StatePending, Held: fleetv1alpha1.ReasonClassNotFound}, heldRecheck},
		"Draining":             {"The drain wakes the worker.", Observation{State: StateDraining}, 0},
		"Backoff":              {"The next attempt.", Observation{State: StateBackoff, RetryAt: now.Add(3 * time.Second)}, 3 * time.Second},
		"BackoffPast":          {"Never zero, which would mean never.", Observation{State: StateBackoff, RetryAt: now.Add(-time.Second)}, time.Millisecond},
		"Connected":            {"The next probe.", Observation{State: StateConnected, ProbeAt: now.Add(time.Second)}, time.Second},
		"DrainingUnauthorized": {"A 401 is followed up.", Observation{State: StateDraining, SuspectAt: now.Add(time.Second)}, time.Second},
		"BackoffNoRoom":        {"It is woken when there is room.", Observation{State: StateBackoff, RetryAt: now, ConnectWaits: true}, 0},
		"ConnectedNoRoom":      {"So is this.", Observation{State: StateConnected, ProbeAt: now, CredentialsStale: true, ProbeWaits: true}, 0},
		"ConnectedShadowWaits": {"The next probe does not wait.", Observation{State: StateConnected, ProbeAt: now.Add(time.Second), CredentialsStale: true, ConnectWaits: true}, time.Second},
		"NoRoomHeld":           {"Nor does the end of the grace period.", Observation{State: StateConnected, ProbeAt: now, ProbeWaits: true, Held: fleetv1alpha1.ReasonNotReady, HeldSince: now, Grace: 5 * time.Second}, 5 * time.Second},
		"ConnectedStale":       {"The next attempt with changed credentials, if that is sooner.", Observation{State: StateConnected, ProbeAt: now.Add(time.Minute), CredentialsStale: true, RetryAt: now.Add(2 * time.Second)}, 2 * time.Second},
		"ConnectedHeld":        {"The end of the grace period, if that is sooner.", Observation{State: StateConnected, ProbeAt: now.Add(time.Minute), Held: fleetv1alpha1.ReasonNotReady, HeldSince: now, Grace: 5 * time.Second}, 5 * time.Second},
		"DegradedUnstale":      {"A retry time of long ago does not matter without changed credentials.", Observation{State: StateDegraded, ProbeAt: now.Add(time.Second)}, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Now = now
			if got := WakeAfter(tc.o); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
