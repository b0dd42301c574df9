// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// A State is the connection state of an enrolment; Transition is the state machine.
type State string

const (
	// StatePending means: not connecting, because something is missing or the enrolment is paused.
	StatePending State = "Pending"
	// StateConnecting means: an attempt to connect is under way.
	StateConnecting State = "Connecting"
	// StateConnected means: engaged, and the last probe succeeded.
	StateConnected State = "Connected"
	// StateDegraded means: engaged, but the last probes failed. Caches are served, writes fail at once, queued work is
	// held.
	StateDegraded State = "Degraded"
	// StateBackoff means: not engaged; connecting failed or was refused and is tried again later.
	StateBackoff State = "Backoff"
	// StateDraining means: still engaged, about to be disengaged; no new work starts.
	StateDraining State = "Draining"
	// StateRemoved means: the enrolment is gone. A cluster in this state is no longer listed.
	StateRemoved State = "Removed"
)

// Engaged reports whether controllers are engaged with a cluster in this state.
func (s State) Engaged() bool {
	return s == StateConnected || s == StateDegraded || s == StateDraining
}
