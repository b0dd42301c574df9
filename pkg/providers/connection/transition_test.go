// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type edge struct {
	State State
	Event event
}

type target struct {
	reason  string
	to      State
	actions []action
}

// changes lists every pair of a state and an event that changes something. TestTransition holds that all others change
// nothing, so that together they say what every state does on every event.
func changes() map[edge]target {
	connected := []action{actionOpenGate, actionEngage, actionScheduleSettle, actionScheduleProbe}
	gone := []action{actionRelease}
	goneAtOnce := []action{actionCancelDrain, actionDisengage, actionRelease}
	lost := []action{actionDisengage, actionScheduleRetry}
	down := []action{actionCancelDrain, actionDisengage, actionResetRetry}
	drain := []action{actionDrain}
	m := map[edge]target{
		{StatePending, eventWanted}:         {"All that is needed is there.", StateConnecting, []action{actionConnect}},
		{StatePending, eventUnenrolled}:     {"Nothing was connected: nothing to drain.", StateRemoved, gone},
		{StatePending, eventObjectReplaced}: {"The new object starts with a new record.", StateRemoved, gone},

		{StateConnecting, eventConnected}:      {"The gate opens before the initial list arrives, else it is dropped.", StateConnected, connected},
		{StateConnecting, eventConnectFailed}:  {"Tried again after a back-off.", StateBackoff, []action{actionScheduleRetry}},
		{StateConnecting, eventRefused}:        {"A duplicate, the hub, or another cluster than before: nothing is engaged.", StateBackoff, []action{actionScheduleRetry}},
		{StateConnecting, eventHeld}:           {"It is not to be connected after all.", StatePending, nil},
		{StateConnecting, eventUnenrolled}:     {"Nothing is connected yet: nothing to drain.", StateRemoved, gone},
		{StateConnecting, eventObjectReplaced}: {"The new object starts with a new record.", StateRemoved, gone},

		{StateBackoff, eventRetry}:          {"The back-off has passed.", StateConnecting, []action{actionConnect}},
		{StateBackoff, eventHeld}:           {"Trying is pointless while it is paused or not ready; that ends no back-off.", StatePending, nil},
		{StateBackoff, eventUnenrolled}:     {"Nothing is connected: nothing to drain.", StateRemoved, gone},
		{StateBackoff, eventObjectReplaced}: {"The new object starts with a new record, and without the back-off.", StateRemoved, gone},

		{StateConnected, eventProbeSucceeded}: {"All is well.", StateConnected, []action{actionScheduleProbe}},
		{StateConnected, eventSettled}:        {"It has lasted: earlier failures are forgotten.", StateConnected, []action{actionResetRetry}},
		{StateConnected, eventProbeFailed}:    {"The first failure holds work and writes.", StateDegraded, []action{actionCloseGate, actionScheduleProbe}},
		{StateDegraded, eventProbeSucceeded}:  {"It is back: nothing is engaged anew.", StateConnected, []action{actionOpenGate, actionScheduleProbe}},
		{StateDegraded, eventProbeFailed}:     {"Not often enough yet.", StateDegraded, []action{actionScheduleProbe}},

		{StateDraining, eventWanted}:         {"Called off; the gate opens after a probe.", StateDegraded, []action{actionCancelDrain, actionCloseGate, actionProbeNow}},
		{StateDraining, eventTokenChanged}:   {"Leave is taken with the token that is accepted.", StateDraining, []action{actionSwapToken}},
		{StateDraining, eventDrained}:        {"No work runs any more, or the time is over.", StatePending, down},
		{StateDraining, eventLost}:           {"There is nothing left to wait for.", StatePending, down},
		{StateDraining, eventObjectReplaced}: {"The successor must not wait for, nor be served by, the predecessor.", StateRemoved, goneAtOnce},
	}
	for _, s := range []State{StateConnected, StateDegraded} {
		m[edge{s, eventLost}] = target{"Of no use any more: disengaged, and tried again later.", StateBackoff, lost}
		m[edge{s, eventTokenChanged}] = target{"Swapped in place: no informer restarts.", s, []action{actionSwapToken, actionProbeNow}}
		m[edge{s, eventEndpointChanged}] = target{"Make before break.", s, []action{actionConnectShadow}}
		m[edge{s, eventConnected}] = target{"The shadow takes over.", StateConnected, connected}
		m[edge{s, eventConnectFailed}] = target{"The shadow failed: what serves goes on.", s, []action{actionScheduleRetry}}
		m[edge{s, eventHeld}] = target{"Paused, or not ready for longer than the grace period.", StateDraining, drain}
		m[edge{s, eventRefused}] = target{"It now claims an identifier that belongs to another.", StateDraining, drain}
		m[edge{s, eventUnenrolled}] = target{"Work that runs may end.", StateDraining, drain}
		m[edge{s, eventObjectReplaced}] = target{"Not drained: the successor must never be served by this connection.", StateRemoved, goneAtOnce}
	}
	return m
}

// states are all states that there are.
func states() []State {
	return []State{StatePending, StateConnecting, StateConnected, StateDegraded, StateBackoff, StateDraining, StateRemoved}
}

// events are all events that there are.
func events() []event {
	return []event{
		eventWanted, eventHeld, eventUnenrolled, eventObjectReplaced, eventRefused, eventRetry, eventConnected, eventConnectFailed,
		eventProbeSucceeded, eventProbeFailed, eventLost, eventTokenChanged, eventEndpointChanged, eventSettled, eventDrained,
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
				to, actions := transition(s, e)
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

// TestTransitionKeepsItsWord holds rules over all edges, so that a new edge cannot break one unseen.
func TestTransitionKeepsItsWord(t *testing.T) {
	for _, s := range states() {
		for _, e := range events() {
			to, actions := transition(s, e)
			has := map[action]bool{}
			for _, a := range actions {
				has[a] = true
			}
			if s.Engaged() && !to.Engaged() && !has[actionDisengage] {
				t.Errorf("%s on %s: leaves the engaged states without disengaging", s, e)
			}
			if !s.Engaged() && to.Engaged() && !has[actionEngage] {
				t.Errorf("%s on %s: enters an engaged state without engaging", s, e)
			}
			if to == StateRemoved && s != StateRemoved && !has[actionRelease] {
				t.Errorf("%s on %s: is removed without a release", s, e)
			}
			if to == StateBackoff && s != StateBackoff && !has[actionScheduleRetry] {
				t.Errorf("%s on %s: backs off without an end", s, e)
			}
			if s == StateDraining && to != StateDraining && !has[actionCancelDrain] {
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
		o      observation
		want   decision
	}{
		"Pending":                   {"Nothing holds it.", observation{state: StatePending, enrolled: true, sameObject: true}, decision{stepEvent, eventWanted}},
		"PendingHeld":               {"It stays pending as long as something is missing.", observation{state: StatePending, enrolled: true, sameObject: true, held: ReasonNotReady, heldSince: now, grace: time.Hour}, decision{step: stepWait}},
		"PendingGone":               {"It is forgotten.", observation{state: StatePending}, decision{stepEvent, eventUnenrolled}},
		"ReplacedBeatsAll":          {"Another object of the same name comes before everything else.", observation{state: StateConnected, enrolled: true, held: ReasonPaused, heldAtOnce: true, lost: true}, decision{stepEvent, eventObjectReplaced}},
		"ReplacedWhileDraining":     {"The successor does not wait.", observation{state: StateDraining, enrolled: true}, decision{stepEvent, eventObjectReplaced}},
		"BackoffWaits":              {"Its time has not come.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: after}, decision{step: stepWait}},
		"BackoffOver":               {"Its time has come.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: now}, decision{stepEvent, eventRetry}},
		"BackoffChanged":            {"What changed makes waiting pointless.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: after, changed: true}, decision{stepEvent, eventRetry}},
		"BackoffHeld":               {"No grace without a connection.", observation{state: StateBackoff, enrolled: true, sameObject: true, held: ReasonNotReady, heldSince: now, grace: time.Hour, retryAt: before}, decision{stepEvent, eventHeld}},
		"ConnectedInGrace":          {"It is kept for the grace period.", observation{state: StateConnected, enrolled: true, sameObject: true, held: ReasonNotReady, heldSince: before, grace: time.Minute, probeAt: after}, decision{step: stepWait}},
		"ConnectedProbedInGrace":    {"And probed as ever.", observation{state: StateConnected, enrolled: true, sameObject: true, held: ReasonNotReady, heldSince: before, grace: time.Minute, probeAt: before}, decision{step: stepProbe}},
		"ConnectedAfterGrace":       {"The grace period is over.", observation{state: StateConnected, enrolled: true, sameObject: true, held: ReasonNotReady, heldSince: now.Add(-time.Minute), grace: time.Minute, probeAt: after}, decision{stepEvent, eventHeld}},
		"ConnectedPaused":           {"Pausing takes effect at once.", observation{state: StateConnected, enrolled: true, sameObject: true, held: ReasonPaused, heldAtOnce: true, heldSince: now, grace: time.Hour, probeAt: after}, decision{stepEvent, eventHeld}},
		"ConnectedGone":             {"Drained first.", observation{state: StateConnected}, decision{stepEvent, eventUnenrolled}},
		"ConnectedConflict":         {"It claims what belongs to another.", observation{state: StateConnected, enrolled: true, sameObject: true, conflict: true, probeAt: after}, decision{stepEvent, eventRefused}},
		"ConnectedStopped":          {"The cache ended by itself.", observation{state: StateConnected, enrolled: true, sameObject: true, lost: true, probeAt: after}, decision{stepEvent, eventLost}},
		"ConnectedStale":            {"A changed Secret comes before a probe.", observation{state: StateConnected, enrolled: true, sameObject: true, credentialsStale: true, probeAt: before}, decision{step: stepCheckCredentials}},
		"ConnectedStaleBacksOff":    {"Changed credentials that did not work wait for their turn.", observation{state: StateConnected, enrolled: true, sameObject: true, credentialsStale: true, retryAt: after, probeAt: after}, decision{step: stepWait}},
		"ConnectedStaleUnread":      {"Newer ones are looked at, at least.", observation{state: StateConnected, enrolled: true, sameObject: true, credentialsStale: true, credentialsUnread: true, retryAt: after, probeAt: after}, decision{step: stepCheckCredentials}},
		"ConnectedStaleNoRoom":      {"A probe does not wait for the room that a new connection needs.", observation{state: StateConnected, enrolled: true, sameObject: true, credentialsStale: true, connectWaits: true, probeAt: before}, decision{step: stepProbe}},
		"ConnectedNoRoom":           {"There is no room for a probe.", observation{state: StateConnected, enrolled: true, sameObject: true, probeWaits: true, probeAt: before}, decision{step: stepWait}},
		"ConnectedNoRoomHeld":       {"What takes no room happens all the same.", observation{state: StateConnected, enrolled: true, sameObject: true, held: ReasonPaused, heldAtOnce: true, connectWaits: true, probeWaits: true}, decision{stepEvent, eventHeld}},
		"PendingNoRoom":             {"There is no room to connect.", observation{state: StatePending, enrolled: true, sameObject: true, connectWaits: true}, decision{step: stepWait}},
		"BackoffNoRoom":             {"There is no room to try again.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: before, connectWaits: true}, decision{step: stepWait}},
		"BackoffTouched":            {"A Secret that was touched is read, which ends no back-off.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: after, credentialsStale: true, credentialsUnread: true}, decision{step: stepCheckCredentials}},
		"BackoffStaleRead":          {"And only once.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: after, credentialsStale: true}, decision{step: stepWait}},
		"BackoffOverTouched":        {"An attempt reads it anyway.", observation{state: StateBackoff, enrolled: true, sameObject: true, retryAt: now, credentialsUnread: true}, decision{stepEvent, eventRetry}},
		"ConnectedUnsettled":        {"It has not lasted yet.", observation{state: StateConnected, enrolled: true, sameObject: true, settleAt: after, probeAt: after}, decision{step: stepWait}},
		"ConnectedSettled":          {"It has lasted.", observation{state: StateConnected, enrolled: true, sameObject: true, settleAt: now, probeAt: after}, decision{stepEvent, eventSettled}},
		"DegradedNeverSettles":      {"That it was connected long ago says nothing about now.", observation{state: StateDegraded, enrolled: true, sameObject: true, settleAt: before, probeAt: after}, decision{step: stepWait}},
		"DegradedProbeDue":          {"Degraded clusters are probed, too.", observation{state: StateDegraded, enrolled: true, sameObject: true, probeAt: now}, decision{step: stepProbe}},
		"DrainingWaits":             {"Work still runs.", observation{state: StateDraining}, decision{step: stepWait}},
		"DrainingDone":              {"None does.", observation{state: StateDraining, drained: true}, decision{stepEvent, eventDrained}},
		"DrainingDoneThoughWanted":  {"Once drained, it is too late to call it off.", observation{state: StateDraining, enrolled: true, sameObject: true, drained: true}, decision{stepEvent, eventDrained}},
		"DrainingWanted":            {"The label is back.", observation{state: StateDraining, enrolled: true, sameObject: true}, decision{stepEvent, eventWanted}},
		"DrainingWantedConflicting": {"What was drained for a conflict is not wanted while the conflict lasts.", observation{state: StateDraining, enrolled: true, sameObject: true, conflict: true}, decision{step: stepWait}},
		"DrainingHeld":              {"Nor is what is paused.", observation{state: StateDraining, enrolled: true, sameObject: true, held: ReasonPaused, heldAtOnce: true}, decision{step: stepWait}},
		"DrainingToken":             {"A rotated token is needed until the end.", observation{state: StateDraining, enrolled: true, sameObject: true, held: ReasonPaused, heldAtOnce: true, credentialsStale: true, credentialsUnread: true}, decision{step: stepCheckCredentials}},
		"DrainingUnauthorized":      {"Of one that is not enrolled, only a 401 tells.", observation{state: StateDraining, suspectAt: now}, decision{step: stepCheckCredentials}},
		"DrainingUnauthorizedLater": {"Not again and again.", observation{state: StateDraining, suspectAt: after}, decision{step: stepWait}},
		"DrainingStopped":           {"There is nothing to wait for.", observation{state: StateDraining, lost: true}, decision{stepEvent, eventLost}},
		"Removed":                   {"It is over.", observation{state: StateRemoved, enrolled: true, sameObject: true}, decision{step: stepWait}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.now = now
			if got := decide(tc.o); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestWakeAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	cases := map[string]struct {
		reason string
		o      observation
		want   time.Duration
	}{
		"Pending":              {"Only an event changes anything.", observation{state: StatePending}, 0},
		"PendingHeld":          {"Looked at again, should an event be missed.", observation{state: StatePending, held: ReasonClassNotFound}, heldRecheck},
		"Draining":             {"The drain wakes the worker.", observation{state: StateDraining}, 0},
		"Backoff":              {"The next attempt.", observation{state: StateBackoff, retryAt: now.Add(3 * time.Second)}, 3 * time.Second},
		"BackoffPast":          {"Never zero, which would mean never.", observation{state: StateBackoff, retryAt: now.Add(-time.Second)}, time.Millisecond},
		"Connected":            {"The next probe.", observation{state: StateConnected, probeAt: now.Add(time.Second)}, time.Second},
		"DrainingUnauthorized": {"A 401 is followed up.", observation{state: StateDraining, suspectAt: now.Add(time.Second)}, time.Second},
		"BackoffNoRoom":        {"It is woken when there is room.", observation{state: StateBackoff, retryAt: now, connectWaits: true}, 0},
		"ConnectedNoRoom":      {"So is this.", observation{state: StateConnected, probeAt: now, credentialsStale: true, probeWaits: true}, 0},
		"ConnectedShadowWaits": {"The next probe does not wait.", observation{state: StateConnected, probeAt: now.Add(time.Second), credentialsStale: true, connectWaits: true}, time.Second},
		"NoRoomHeld":           {"Nor does the end of the grace period.", observation{state: StateConnected, probeAt: now, probeWaits: true, held: ReasonNotReady, heldSince: now, grace: 5 * time.Second}, 5 * time.Second},
		"ConnectedStale":       {"The next attempt with changed credentials, if that is sooner.", observation{state: StateConnected, probeAt: now.Add(time.Minute), credentialsStale: true, retryAt: now.Add(2 * time.Second)}, 2 * time.Second},
		"ConnectedHeld":        {"The end of the grace period, if that is sooner.", observation{state: StateConnected, probeAt: now.Add(time.Minute), held: ReasonNotReady, heldSince: now, grace: 5 * time.Second}, 5 * time.Second},
		"DegradedUnstale":      {"A retry time of long ago does not matter without changed credentials.", observation{state: StateDegraded, probeAt: now.Add(time.Second)}, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.now = now
			if got := wakeAfter(tc.o); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	cases := map[string]struct {
		reason   string
		failures int
		random   float64
		want     time.Duration
	}{
		"First":       {"The base, times the jitter.", 1, 0.5, 500 * time.Millisecond},
		"Third":       {"Doubled each time.", 3, 0.5, 2 * time.Second},
		"Capped":      {"Never longer than the longest.", 1000, 0.5, 150 * time.Second},
		"NeverAtOnce": {"Full jitter may be zero, waiting may not.", 4, 0, minRetry},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := backoff(tc.failures, time.Second, 5*time.Minute, tc.random); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
