// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthcheck makes the Pods of the health checks of Applications, and says what they say.
//
// An Application has one Pod at most, named by the hash of its template. One that ended or was lost is replaced, later
// each time. A Pod that the Application does not control is never touched, whatever its name.
//
// What the Pod is like, and what is kept of it, is in pod.go; what is done about it is decided and carried out in
// ensure.go. Both ask the cluster through the interface Cluster alone.
//
// What does the owner of one workload cluster gain? Who can write Applications can run Pods in their namespace, if the
// cluster gives Masthead the right to; ensure.go says what that means. Nothing of another cluster is at hand here.
package healthcheck
