// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence prevents writes by a manager that has lost its lease.
//
// Leader election decides which replica may start. It does not stop the previous leader: a process that was frozen, or
// cut off from the hub, continues when it is thawed, until it notices that another replica holds the lease. Until then
// it would act on outdated decisions beside a new leader: create an object in the hub that was deleted meanwhile, or
// release a claim in a workload cluster whose object in the hub the new leader is just creating.
//
// # What it guarantees
//
//   - A write request, to the hub or to a workload cluster, is sent only while the process holds the lease by its own
//     clock: until the lease duration has passed since the start of the last successful renewal. Other replicas wait
//     for that duration from when they saw the renewal, which is later. Clocks of other machines do not matter, nor
//     does a sleep of the process: the clock is monotonic and keeps running.
//   - That holds for every client of the hub, and for everything that a connection to a workload cluster sends, probes
//     and the marker of the hub included.
//   - Reads are always sent. So are token and access reviews, which non-leading replicas send to protect their metrics,
//     and requests for a token of an imported cluster, which store nothing.
//   - A leader that releases its lease stops writing first. It releases no lease that may be another replica's by now.
//
// A slow API server may still execute a request later that was sent in time. The new leader must allow for that; see
// pkg/controllers/agent/index, inflight.go.
package fence
