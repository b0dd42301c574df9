// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the state machine of an enrolment, from when it is first seen until it is forgotten. It is pure:
// it has no client, no clock and no state.
//
//   - Decide says what comes next, given all that is observed without I/O, and WakeAfter when to look again.
//   - Transition says to which state an event leads, and by which actions.
//
// It guarantees that Transition is total: an event that means nothing in a state changes nothing. Decide looks at what
// must stop before what may go on. The table in transition_test.go has every pair of a state and an event that changes
// something, and the test holds that no other does.
//
// To add an event or an action, add it to transition.go and to the table; package connection carries actions out.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a cluster
// decides with its answers which events there are, of its own enrolment alone, and none of them skips the back-off.
package lifecycle
