// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport carries the requests of one connection to the API server of one cluster, and reads its answers. It
// knows credentials, and nothing of enrolments or of their states: whom it tells and what it charges is its Owner.
//
// # What it guarantees
//
//   - The token leaves for the configured host only, is in no rest.Config, and can be swapped between two requests.
//   - A name is checked for where it leads when it is dialled. Redirects and requests to another host are errors.
//   - No answer is read beyond its Limits, all of them are JSON that is not compressed, and each is scanned before it
//     is decoded. What is under way is charged to the account of the cluster.
//   - A cluster that sends more than its Pace is read late, and nothing is dropped. Clusters that send much at the same
//     time share what is read of all of them. Probes are not held up.
//   - A Transport that is closed keeps no socket, and lets nothing through, for good.
//   - A panic while something is dialled or read costs the cluster its connection, and not the process its life.
//
// # Where to change what
//
//   - transport.go: what is let through, and what becomes of a request and of its answer. dial.go: where is dialled.
//   - limits.go: how much is read, and the defaults. body.go: which limits an answer has, and what is refused at once.
//   - pace.go and pace_shared.go: how fast is read, of one cluster and of many.
//   - throttle.go: how fast is asked. requests.go: what is counted of requests.
//
// # What does the owner of one workload cluster gain?
//
// The requests that are sent to it, with its own credentials, and a bounded part of the memory and of the processor. It
// can not steer the manager elsewhere: not by redirects, names that lead to denied addresses, or the proxy of the
// environment, which is not used.
package transport
