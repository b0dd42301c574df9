// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// An Event is something that happens to an enrolment.
type Event string

const (
	// EventWanted means: it is enrolled and can be connected.
	EventWanted Event = "Wanted"
	// EventHeld means: it is enrolled, but must not be connected now: paused, not ready, no credentials, no class. For an
	// engaged cluster, all but the first only cause this event after the grace period.
	EventHeld Event = "Held"
	// EventUnenrolled means: the object is gone or is no longer enrolled.
	EventUnenrolled Event = "Unenrolled"
	// EventObjectReplaced means: another object has the name now.
	EventObjectReplaced Event = "ObjectReplaced"
	// EventRefused means: it leads to a cluster that it may not hold: a duplicate, another cluster than before, the hub.
	EventRefused Event = "Refused"
	// EventRetry means: the back-off has passed, or a change justifies a retry now.
	EventRetry Event = "Retry"
	// EventConnected means: an attempt to connect, or to make a shadow connection, succeeded.
	EventConnected Event = "Connected"
	// EventConnectFailed means: such an attempt failed.
	EventConnectFailed Event = "ConnectFailed"
	// EventProbeSucceeded means: the API server answered a probe.
	EventProbeSucceeded Event = "ProbeSucceeded"
	// EventProbeFailed means: the probe failed, below the threshold.
	EventProbeFailed Event = "ProbeFailed"
	// EventLost means: the connection no longer works: too many probes failed, another cluster responds, the cluster's
	// data made the manager panic, or a controller refused the cluster.
	EventLost Event = "Lost"
	// EventTokenChanged means: the Secret holds another token, and nothing else changed.
	EventTokenChanged Event = "TokenChanged"
	// EventEndpointChanged means: the Secret holds another endpoint, authority or client certificate.
	EventEndpointChanged Event = "EndpointChanged"
	// EventSettled means: the connection has lasted long enough to reset the back-off.
	EventSettled Event = "Settled"
	// EventDrained means: the cluster's work has ended and it was offboarded, or the time for that is over.
	EventDrained Event = "Drained"
)

// An Action is what the reconciler does on a transition, in the order given.
type Action string

const (
	// ActionConnect makes a connection and leads to Connected, ConnectFailed or Refused.
	ActionConnect Action = "Connect"
	// ActionConnectShadow does the same beside the active connection. It leads to Connected or ConnectFailed.
	ActionConnectShadow Action = "ConnectShadow"
	// ActionEngage makes Get return the new connection and engages the controllers with it. A previous connection is ended
	// when the new one's caches are synced. It leads to Lost if a controller refuses.
	ActionEngage Action = "Engage"
	// ActionDisengage ends the connection and purges the queues.
	ActionDisengage Action = "Disengage"
	// ActionOpenGate dispatches queued work and lets writes through.
	ActionOpenGate Action = "OpenGate"
	// ActionCloseGate holds queued work, and makes writes fail at once.
	ActionCloseGate Action = "CloseGate"
	// ActionSwapToken makes the connection use the new token from its next request on.
	ActionSwapToken Action = "SwapToken"
	// ActionDrain holds queued work, offboards the cluster if it leaves for good, and leads to Drained.
	ActionDrain Action = "Drain"
	// ActionCancelDrain cancels a running drain.
	ActionCancelDrain Action = "CancelDrain"
	// ActionScheduleProbe sets the time of the next probe.
	ActionScheduleProbe Action = "ScheduleProbe"
	// ActionProbeNow makes the next probe due.
	ActionProbeNow Action = "ProbeNow"
	// ActionScheduleRetry sets the time of the next attempt to connect, with exponential back-off and full jitter.
	ActionScheduleRetry Action = "ScheduleRetry"
	// ActionResetRetry resets the back-off.
	ActionResetRetry Action = "ResetRetry"
	// ActionScheduleSettle sets the time at which the connection will have lasted long enough.
	ActionScheduleSettle Action = "ScheduleSettle"
	// ActionRelease releases the cluster's identity and deletes the enrolment's record, metric series included.
	ActionRelease Action = "Release"
)

// Transition is the connection state machine. It is total: an event without a meaning in a state changes nothing.
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
// Holding an enrolment does not reset the back-off: otherwise an unresponsive cluster would be tried again each time
// that its Secret is deleted and re-created.
//
// Nor does a connection that was just made, only one that settles: otherwise an API server that responds to the
// requests for connecting and refuses all others would make the manager reconnect and fill caches twice a second
// forever.
//
// A cancelled drain continues as Degraded, so the gate opens only after a probe: the cluster's health is unknown. A
// failed shadow connection never affects the active connection; the probe judges that one. A replaced object is not
// drained: its successor may be another cluster, and must never use the predecessor's connection.
func Transition(s State, e Event) (State, []Action) {
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

func fromPending(e Event) (State, []Action) {
	switch e {
	case EventWanted:
		return StateConnecting, []Action{ActionConnect}
	case EventUnenrolled, EventObjectReplaced:
		return StateRemoved, []Action{ActionRelease}
	default:
		return StatePending, nil
	}
}

func fromConnecting(e Event) (State, []Action) {
	switch e {
	case EventConnected:
		return StateConnected, []Action{ActionOpenGate, ActionEngage, ActionScheduleSettle, ActionScheduleProbe}
	case EventConnectFailed, EventRefused:
		return StateBackoff, []Action{ActionScheduleRetry}
	case EventHeld:
		return StatePending, nil
	case EventUnenrolled, EventObjectReplaced:
		return StateRemoved, []Action{ActionRelease}
	default:
		return StateConnecting, nil
	}
}

func fromBackoff(e Event) (State, []Action) {
	switch e {
	case EventRetry:
		return StateConnecting, []Action{ActionConnect}
	case EventHeld:
		return StatePending, nil
	case EventUnenrolled, EventObjectReplaced:
		return StateRemoved, []Action{ActionRelease}
	default:
		return StateBackoff, nil
	}
}

// fromEngaged handles Connected and Degraded, which differ only in probes.
func fromEngaged(s State, e Event) (State, []Action) {
	switch e {
	case EventProbeSucceeded:
		if s == StateConnected {
			return StateConnected, []Action{ActionScheduleProbe}
		}
		return StateConnected, []Action{ActionOpenGate, ActionScheduleProbe}
	case EventProbeFailed:
		if s == StateDegraded {
			return StateDegraded, []Action{ActionScheduleProbe}
		}
		return StateDegraded, []Action{ActionCloseGate, ActionScheduleProbe}
	case EventSettled:
		if s == StateConnected {
			return StateConnected, []Action{ActionResetRetry}
		}
		return s, nil
	case EventLost:
		return StateBackoff, []Action{ActionDisengage, ActionScheduleRetry}
	case EventTokenChanged:
		return s, []Action{ActionSwapToken, ActionProbeNow}
	case EventEndpointChanged:
		return s, []Action{ActionConnectShadow}
	case EventConnected:
		return StateConnected, []Action{ActionOpenGate, ActionEngage, ActionScheduleSettle, ActionScheduleProbe}
	case EventConnectFailed:
		return s, []Action{ActionScheduleRetry}
	case EventHeld, EventRefused, EventUnenrolled:
		return StateDraining, []Action{ActionDrain}
	case EventObjectReplaced:
		return StateRemoved, []Action{ActionCancelDrain, ActionDisengage, ActionRelease}
	default:
		return s, nil
	}
}

func fromDraining(e Event) (State, []Action) {
	switch e {
	case EventWanted:
		return StateDegraded, []Action{ActionCancelDrain, ActionCloseGate, ActionProbeNow}
	case EventTokenChanged:
		return StateDraining, []Action{ActionSwapToken}
	case EventDrained, EventLost:
		return StatePending, []Action{ActionCancelDrain, ActionDisengage, ActionResetRetry}
	case EventObjectReplaced:
		return StateRemoved, []Action{ActionCancelDrain, ActionDisengage, ActionRelease}
	default:
		return StateDraining, nil
	}
}
