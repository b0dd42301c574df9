// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

// An event is what can happen to an enrolment.
type event string

const (
	// eventWanted: it is enrolled, and everything that is needed to connect is there.
	eventWanted event = "Wanted"
	// eventHeld: it is enrolled, and must not be connected now: paused, not ready, no credentials, no class. For a
	// cluster that is engaged, all but the first only become this event after the grace period.
	eventHeld event = "Held"
	// eventUnenrolled: the object is gone or is no longer enrolled.
	eventUnenrolled event = "Unenrolled"
	// eventObjectReplaced: another object has the name now.
	eventObjectReplaced event = "ObjectReplaced"
	// eventRefused: it leads to a cluster that it may not have: a duplicate, another cluster than before, the hub.
	eventRefused event = "Refused"
	// eventRetry: the back-off has passed, or something changed that makes waiting pointless.
	eventRetry event = "Retry"
	// eventConnected: an attempt to connect, or to make a shadow connection, succeeded.
	eventConnected event = "Connected"
	// eventConnectFailed: such an attempt failed.
	eventConnectFailed event = "ConnectFailed"
	// eventProbeSucceeded: the API server answered a probe.
	eventProbeSucceeded event = "ProbeSucceeded"
	// eventProbeFailed: it did not, and has not failed often enough yet.
	eventProbeFailed event = "ProbeFailed"
	// eventLost: the connection is of no use any more: too many probes failed, another cluster answers, the cache stopped
	// by itself, something of the cluster made the manager panic, or a controller refused the cluster.
	eventLost event = "Lost"
	// eventTokenChanged: the Secret holds another token, and nothing else changed.
	eventTokenChanged event = "TokenChanged"
	// eventEndpointChanged: the Secret holds another endpoint, authority or client certificate.
	eventEndpointChanged event = "EndpointChanged"
	// eventSettled: the connection has lasted long enough for earlier failures to mean nothing any more.
	eventSettled event = "Settled"
	// eventDrained: no work of the cluster runs any more and leave was taken of it, or the time for that is over.
	eventDrained event = "Drained"
)

// An action is what the reconciler does on a transition, in the order given.
type action string

const (
	// actionConnect makes a connection and leads to Connected, ConnectFailed or Refused.
	actionConnect action = "Connect"
	// actionConnectShadow does the same beside the connection that serves. It leads to Connected or ConnectFailed.
	actionConnectShadow action = "ConnectShadow"
	// actionEngage makes the new connection the one that Get returns and engages the controllers with it. A connection
	// that it succeeds is ended when the new one's caches are filled. It leads to Lost if a controller refuses.
	actionEngage action = "Engage"
	// actionDisengage ends the connection and purges the queues.
	actionDisengage action = "Disengage"
	// actionOpenGate dispatches queued work and lets writes through.
	actionOpenGate action = "OpenGate"
	// actionCloseGate holds queued work, and has writes fail at once.
	actionCloseGate action = "CloseGate"
	// actionSwapToken has the connection use the new token from its next request on.
	actionSwapToken action = "SwapToken"
	// actionDrain holds queued work, takes leave of the cluster if it leaves for good, and leads to Drained.
	actionDrain action = "Drain"
	// actionCancelDrain forgets a drain that is under way.
	actionCancelDrain action = "CancelDrain"
	// actionScheduleProbe sets the time of the next probe.
	actionScheduleProbe action = "ScheduleProbe"
	// actionProbeNow makes the next probe due.
	actionProbeNow action = "ProbeNow"
	// actionScheduleRetry sets the time of the next attempt to connect, with exponential back-off and full jitter.
	actionScheduleRetry action = "ScheduleRetry"
	// actionResetRetry forgets earlier failures.
	actionResetRetry action = "ResetRetry"
	// actionScheduleSettle sets the time at which the connection will have lasted long enough.
	actionScheduleSettle action = "ScheduleSettle"
	// actionRelease gives up the hold on the cluster's identity and deletes what is kept about the enrolment, metric
	// series included.
	actionRelease action = "Release"
)

// transition is the connection state machine. It is total: an event that means nothing in a state changes nothing.
//
//	From                           | Event                     | To         | Actions
//	Pending                        | Wanted                    | Connecting | Connect
//	Backoff                        | Retry                     | Connecting | Connect
//	Connecting                     | Connected                 | Connected  | OpenGate, Engage, ScheduleSettle, ScheduleProbe
//	Connecting                     | ConnectFailed, Refused    | Backoff    | ScheduleRetry
//	Connecting, Backoff            | Held                      | Pending    |
//	Connected                      | ProbeSucceeded            | Connected  | ScheduleProbe
//	Connected                      | ProbeFailed               | Degraded   | CloseGate, ScheduleProbe
//	Degraded                       | ProbeSucceeded            | Connected  | OpenGate, ScheduleProbe
//	Degraded                       | ProbeFailed               | Degraded   | ScheduleProbe
//	Connected, Degraded            | Lost                      | Backoff    | Disengage, ScheduleRetry
//	Connected, Degraded            | TokenChanged              | the same   | SwapToken, ProbeNow
//	Connected, Degraded            | EndpointChanged           | the same   | ConnectShadow
//	Connected                      | Settled                   | Connected  | ResetRetry
//	Connected, Degraded            | Connected                 | Connected  | OpenGate, Engage, ScheduleSettle, ScheduleProbe
//	Connected, Degraded            | ConnectFailed             | the same   | ScheduleRetry
//	Connected, Degraded            | Held, Refused, Unenrolled | Draining   | Drain
//	Draining                       | Wanted                    | Degraded   | CancelDrain, CloseGate, ProbeNow
//	Draining                       | TokenChanged              | Draining   | SwapToken
//	Draining                       | Drained, Lost             | Pending    | CancelDrain, Disengage, ResetRetry
//	Pending, Connecting, Backoff   | Unenrolled                | Removed    | Release
//	Pending, Connecting, Backoff   | ObjectReplaced            | Removed    | Release
//	Connected, Degraded, Draining  | ObjectReplaced            | Removed    | CancelDrain, Disengage, Release
//
// What holds an enrolment does not end the back-off either: else a Secret that is taken away and put back, again and
// again, would have a cluster that does not answer tried as often.
//
// That a connection was made does not end the back-off, only that it has lasted does: an API server that answers what
// is asked to connect, and refuses all else, would have the manager connect and fill caches twice a second for ever.
//
// A drain that was called off goes on as Degraded, and so only opens the gate after a probe: it is not known how the
// cluster fared meanwhile. A shadow connection that fails, for whatever reason, leaves the connection that serves
// alone; the probe judges that one. An object that was replaced is not drained: its successor may be another cluster,
// and must never be served by the predecessor's connection.
func transition(s State, e event) (State, []action) {
	switch s {
	case StatePending:
		return fromPending(e)
	case StateConnecting:
		return fromConnecting(e)
	case StateConnected, StateDegraded:
		return fromEngaged(s, e)
	case StateBackoff:
		return fromBackoff(e)
	case StateDraining:
		return fromDraining(e)
	default:
		return StateRemoved, nil
	}
}

func fromPending(e event) (State, []action) {
	switch e {
	case eventWanted:
		return StateConnecting, []action{actionConnect}
	case eventUnenrolled, eventObjectReplaced:
		return StateRemoved, []action{actionRelease}
	default:
		return StatePending, nil
	}
}

func fromConnecting(e event) (State, []action) {
	switch e {
	case eventConnected:
		return StateConnected, []action{actionOpenGate, actionEngage, actionScheduleSettle, actionScheduleProbe}
	case eventConnectFailed, eventRefused:
		return StateBackoff, []action{actionScheduleRetry}
	case eventHeld:
		return StatePending, nil
	case eventUnenrolled, eventObjectReplaced:
		return StateRemoved, []action{actionRelease}
	default:
		return StateConnecting, nil
	}
}

func fromBackoff(e event) (State, []action) {
	switch e {
	case eventRetry:
		return StateConnecting, []action{actionConnect}
	case eventHeld:
		return StatePending, nil
	case eventUnenrolled, eventObjectReplaced:
		return StateRemoved, []action{actionRelease}
	default:
		return StateBackoff, nil
	}
}

// fromEngaged is Connected and Degraded, which differ in probes only.
func fromEngaged(s State, e event) (State, []action) {
	switch e {
	case eventProbeSucceeded:
		if s == StateConnected {
			return StateConnected, []action{actionScheduleProbe}
		}
		return StateConnected, []action{actionOpenGate, actionScheduleProbe}
	case eventProbeFailed:
		if s == StateDegraded {
			return StateDegraded, []action{actionScheduleProbe}
		}
		return StateDegraded, []action{actionCloseGate, actionScheduleProbe}
	case eventSettled:
		if s == StateConnected {
			return StateConnected, []action{actionResetRetry}
		}
		return s, nil
	case eventLost:
		return StateBackoff, []action{actionDisengage, actionScheduleRetry}
	case eventTokenChanged:
		return s, []action{actionSwapToken, actionProbeNow}
	case eventEndpointChanged:
		return s, []action{actionConnectShadow}
	case eventConnected:
		return StateConnected, []action{actionOpenGate, actionEngage, actionScheduleSettle, actionScheduleProbe}
	case eventConnectFailed:
		return s, []action{actionScheduleRetry}
	case eventHeld, eventRefused, eventUnenrolled:
		return StateDraining, []action{actionDrain}
	case eventObjectReplaced:
		return StateRemoved, []action{actionCancelDrain, actionDisengage, actionRelease}
	default:
		return s, nil
	}
}

func fromDraining(e event) (State, []action) {
	switch e {
	case eventWanted:
		return StateDegraded, []action{actionCancelDrain, actionCloseGate, actionProbeNow}
	case eventTokenChanged:
		return StateDraining, []action{actionSwapToken}
	case eventDrained, eventLost:
		return StatePending, []action{actionCancelDrain, actionDisengage, actionResetRetry}
	case eventObjectReplaced:
		return StateRemoved, []action{actionCancelDrain, actionDisengage, actionRelease}
	default:
		return StateDraining, nil
	}
}
