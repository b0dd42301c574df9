// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory publishes the fleet in the hub: a ClusterProfile (multicluster.x-k8s.io/v1alpha1) for each enrolled
// cluster, and in each EnrollmentClass how many clusters name it and how many of them are connected.
//
// It guarantees, for ClusterProfiles:
//
//   - Every enrolled cluster has one, whether it is connected, not yet connected, or refused, in the namespace of the
//     enrolled object and named "<source>-<name>". It is owned by the enrolled object, so that it goes with it: none is
//     made for a cluster that is no longer enrolled and is still being disconnected.
//   - It is written by server-side apply with the field manager "masthead", and only when something in it differs. A
//     property's time of observation changes with the property's value and not before.
//   - What was last seen of a cluster (its version and its identity) stays published while the cluster is not
//     connected, and is never replaced by what a refused connection led to. Pins reads it back after a restart.
//   - How other programs reach the cluster (status.accessProviders, KEP-5339) is published as it is for Masthead's own
//     connection, once that was accepted: the address, the certificates by which the server is recognised, and the name
//     of the Secret with the kubeconfig. No credentials are published, nor is what could hold any, such as a proxy with
//     a password.
//   - A restart of the manager changes nothing in it: while a first attempt to connect has no outcome, its conditions
//     stay as they were.
//   - One is removed only if it bears Masthead's label, Masthead's name as its cluster manager, and the name of a
//     cluster that the cluster's own source says is not enrolled. The source answers from a cache that has been filled,
//     so that a start, or a fleet that looks empty for another reason, never removes one.
//   - One that belongs to another cluster manager is neither written nor removed, even if its name is ours; an event on
//     the enrolled object says so once.
//
// And for EnrollmentClasses: the counts are those of the ClusterProfiles, at most a second or two behind them, and a
// restart of the manager does not change them.
//
// The namespace of an enrolled object is the tenant. Whoever may write ClusterProfiles in it can alter what Masthead
// remembers about the clusters of that namespace: that right belongs to the platform's administrators only. A
// ClusterProfile never speaks for a cluster of another namespace.
//
// Rejected: a sweep that removes every profile which is not in the fleet, because it needs a moment at which the fleet
// is known to be complete, and such a moment does not exist with several sources; one reconcile for each profile that
// asks its own source does not need it.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it writes to
// the hub only, what it writes about a cluster comes from that cluster's own connection, and text that a workload
// cluster supplies (its version, its errors) is cut to a bounded length and published in that cluster's profile only.
package inventory
