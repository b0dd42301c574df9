// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managed ensures and removes what Masthead has in workload clusters: what its installers of definitions
// (agent, discovery, application) share.
//
// # Guarantees
//
//   - Nothing is asked or written while nothing differs: a Record in the object (record.go) or a State in memory
//     (verified.go) says that it is still what was written.
//   - What is written replaces exactly what was seen (wanted.go, writer.go), bears the labels of the hub, and is
//     written by its field manager. It is no server-side apply: what somebody added has to go, and an apply leaves it.
//   - Whose an object is, Marks say (marks.go). What is not this hub's is neither written nor removed by an installer.
//   - A version in which objects may be stored stays in a definition (definition.go).
//   - What is removed is what was looked at (AsSeen). Whether a definition has objects is not looked at here: the agent
//     closes a definition before, discovery removes its copies before, and that of Applications is never removed.
//   - Every answer of an API server has one meaning (answer.go), and users read the same words about it (subject.go).
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. Whoever forges labels, records or states of their own definitions has those left as they are, and deceives
// the users of that cluster. What their API server says is bounded before it is repeated.
package managed
