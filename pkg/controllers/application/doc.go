// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application reconciles the Applications of the workload clusters, the kind of the KEP "Kubernetes Application
// API": an Application owns its components, and its status shows which are installed and healthy. It guarantees:
//
//   - An owner reference is written only while the API server confirmed, at most a second ago, that the Application
//     exists with that UID, and only to the observed version of the object. Deletion is left to the garbage collector;
//     Masthead deletes only the Pods of health checks.
//   - A component that cannot be observed is Unknown with the reason, neither missing nor healthy, and affects no
//     other.
//   - Each kind has one watch per cluster, which keeps a small record of selected objects: memory grows with
//     components, requests with kinds. Nothing is written without a change; an idle cluster and a restart cost nothing.
//   - Discovered objects are shown and not changed. With ObserveOnly no component is written, even by a running
//     reconcile.
//   - When a cluster leaves, no Application still claims to be healthy; owner references stay.
//
// A kind removed from a spec is watched until nothing of it is owned; the status lists owned kinds before the first
// reference, for a manager that starts later.
//
// What does the owner of one workload cluster gain? Nothing in the hub or another cluster: the hub receives a bounded
// summary. Inside the cluster, the right to write Applications and annotate objects amounts to the right to delete
// these, and authors learn what exists in their namespace, but not beyond what the class lists
// (TestAnAuthorLearnsNothingOfOtherNamespaces, TestAnAuthorLearnsNothingThroughAnInventoryOfTheirOwn).
package application
