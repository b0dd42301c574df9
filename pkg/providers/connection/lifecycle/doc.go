// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the state machine of an enrolment. It is pure: it has no client, no clock and no state.
//
//   - Decide returns the next step, given observations made without I/O; WakeAfter returns when to requeue.
//   - Transition returns the next state and the actions for an event.
//
// Transition is total: an event without a meaning in a state changes nothing. Decide checks what must stop before what
// may continue. The table in transition_test.go lists every pair of state and event that changes something, and the
// test verifies that no other does.
//
// To add an event or an action, add it to transition.go and to the table; package connection performs actions.
package lifecycle
