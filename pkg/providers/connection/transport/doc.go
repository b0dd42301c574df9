// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport sends the requests of one connection to the API server of one cluster, and reads its responses. It
// knows credentials, but no enrolments or states: it reports to and charges its Owner.
//
// # What it guarantees
//
//   - The token is sent to the configured host only, is in no rest.Config, and can be swapped between two requests.
//   - The address of a name is checked when it is dialled. Redirects and requests to another host are errors.
//   - No response is read beyond its Limits. All are uncompressed JSON, and each is scanned before it is decoded.
//     Responses in flight are charged to the account of the cluster.
//   - A cluster that exceeds its Pace is read late, but nothing is dropped. Busy clusters share a common pace. Probes
//     are not delayed.
//   - A closed Transport keeps no socket, and lets nothing through, permanently.
//   - A panic while dialling or reading ends the cluster's connection, not the process.
//
// # Where to change what
//
//   - transport.go: modes, requests and responses. dial.go: dialling and its checks.
//   - limits.go: limits and defaults. body.go: which limits apply to a response, and what is refused at once.
//   - pace.go and pace_shared.go: the pace of reading from one cluster and from many.
//   - throttle.go: the rate limit of requests. requests.go: request metrics.
//
// # What does the owner of one workload cluster gain?
//
// The cluster receives requests with its own credentials, and a bounded part of memory and processor time. It cannot
// direct the manager elsewhere: not by redirects, names that resolve to denied addresses, or the proxy of the
// environment, which is not used.
package transport
