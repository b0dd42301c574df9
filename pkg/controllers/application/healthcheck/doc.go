// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthcheck creates the Pods of Applications' health checks, and reports their state.
//
// An Application has at most one Pod, named by the hash of its template. One that ended or was lost is replaced with
// increasing delay. A Pod that the Application does not control is never touched, regardless of its name.
//
// pod.go computes the Pod, and the record kept of it; ensure.go decides on changes and makes them. Both access the
// cluster only through the interface Cluster.
//
// What does the owner of one workload cluster gain? Authors of Applications can run Pods in their namespace, if the
// cluster gives Masthead the right to; see ensure.go. No other cluster is accessible here.
package healthcheck
