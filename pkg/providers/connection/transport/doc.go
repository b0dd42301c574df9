// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport sends the requests of one connection to the API server of one cluster, and reads its responses. It
// knows credentials, but no enrolments or states: it reports to and charges its Owner.
//
// It guarantees:
//
//   - The token is sent to the configured host only, is in no rest.Config, and can be swapped between two requests.
//   - The address of a name is checked when it is dialled. Redirects and requests to another host are errors.
//   - No response is read beyond its Limits. All are uncompressed JSON, and each is scanned before it is decoded.
//     Responses in flight are charged to the account of the cluster.
//   - A cluster that exceeds its RateLimit is read late, but nothing is dropped. Busy clusters share a common limit.
//     Probes are not delayed.
//   - A closed Transport keeps no socket, and lets nothing through, permanently.
//   - A panic while dialling or reading ends the cluster's connection, not the process.
//
// What does the owner of one workload cluster gain? It receives requests with its own credentials, and a bounded part
// of memory and processor time. It cannot direct the manager elsewhere: not by redirects, names that resolve to denied
// addresses, or the proxy of the environment, which is not used.
package transport
