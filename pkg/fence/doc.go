// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence keeps a manager that has lost its lease from writing.
//
// Leader election says who may begin to work. It does not stop who worked before: a process that was frozen, or cut off
// from the hub, goes on where it was when it is thawed, until it has found out that its lease is another's now. In
// between it would carry out decisions that are outdated, beside a leader that has made others: create in the hub what
// was deleted meanwhile, or let a claim go in a workload cluster whose object in the hub the other is just creating.
//
// # What it guarantees
//
//   - A request that changes something, in the hub or in a workload cluster, is sent only while the process holds the
//     lease, as its own clock shows: not after the duration of the lease has passed since the beginning of the last
//     renewal that succeeded. Others wait for that duration from when they saw the renewal, which is later. No clock of
//     another machine matters, and that the process slept does not: the clock is monotonic and goes on.
//   - Reads pass. So do reviews of tokens and rights, which a replica that does not lead sends to guard its metrics.
//   - A leader that gives its lease back stops writing first.
//
// A request that was sent in time may still be carried out later, when the API server is slow. Whoever takes over has
// to allow for that; see pkg/controllers/agent/ledger, inflight.go.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. It looks at the method and the path of what this process sends, and at no answer.
package fence
