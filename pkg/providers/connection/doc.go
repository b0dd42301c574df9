// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection keeps a live connection to every enrolled cluster. It is the multicluster-runtime provider. One
// reconciler per enrolment connects, probes, backs off, rotates, replaces and drains, driven by the pure functions
// lifecycle.Decide and lifecycle.Transition:
//
//	Pending → Connecting → Connected ⇄ Degraded → Backoff → Connecting …
//	                           any engaged state → Draining → Pending or Removed
//
// It guarantees:
//
//   - A dead or slow cluster delays no other, but for some of its own namespace: first attempts, retries, replacements,
//     probes, probes after a failure and offboarding have places of their own (contactlimits.go). One namespace of the
//     hub gets half of them, unless an option says otherwise. No worker waits for a drain or a hand-over.
//   - A rotated token is swapped in place; for anything else a new connection is verified and synced before the old
//     ends. Credentials that do not work leave the connection alone, and only other credentials end a back-off.
//   - A name refers to one cluster, by the UID of its kube-system, for as long as the enrolled object exists, across
//     restarts if Pins are given. The hub and the clusters of other hubs (package hubidentity) are refused.
//   - While a probe fails, writes fail at once and work is held. An ended connection keeps no goroutine, socket or
//     series.
//   - A cluster whose enrolment ends while it responds is offboarded, at the next start too, for at most
//     OffboardTimeout.
//   - No Secret is cached, and no token is in a rest.Config, a log line, an event, a condition or a metric.
//
// Enrolled objects get no finalizer: their deletion must not depend on this manager.
//
// What does the owner of one workload cluster gain? Requests that carry their own cluster's credentials. Owners who
// give kube-system another cluster's UID are refused while that one is enrolled; if it was un-enrolled, they get what
// it left in the hub: restrict who may enrol. A hostile API server costs one worker for one time-out, and memory within
// its share.
package connection
