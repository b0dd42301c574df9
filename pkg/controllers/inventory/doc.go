// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory publishes the fleet in the hub: a ClusterProfile (multicluster.x-k8s.io/v1alpha1) for each enrolled
// cluster, and in each EnrollmentClass how many clusters name it and how many of them are connected.
//
// It guarantees, for ClusterProfiles:
//
//   - Every enrolled cluster has one, whether connected, not yet connected, or refused, in the namespace of the
//     enrolled object and named "<source>-<name>". The enrolled object owns it, so that it is deleted with that
//     object: none is created for a cluster that is no longer enrolled and is still being disconnected.
//   - It is written by server-side apply with the field manager "masthead", and only when something in it differs. A
//     property's observation time changes only with the property's value.
//   - The last observation of a cluster (its version and its identity) stays published while the cluster is not
//     connected, and is never replaced by that of a refused connection. Pins reads it back after a restart.
//   - How other programs reach the cluster (status.accessProviders, KEP-5339) is published as Masthead's own connection
//     uses it, once that was accepted: the address, the certificates that verify the server, and the name of the Secret
//     with the kubeconfig. No credentials are published, nor anything that could hold any, such as a proxy with a
//     password.
//   - A restart of the manager changes nothing in it: until the first attempt to connect has an outcome, its conditions
//     are unchanged.
//   - One is removed only if it has Masthead's label, Masthead's name as its cluster manager, and the name of a cluster
//     that the cluster's own source reports as not enrolled. The source answers from a synced cache, so that a start,
//     or a fleet that looks empty for another reason, never removes one.
//   - One that belongs to another cluster manager is neither written nor removed, even if its name is ours; this is
//     reported once in an event on the enrolled object.
//
// And for EnrollmentClasses: the counts are those of the ClusterProfiles, at most a second or two behind them, and a
// restart of the manager does not change them.
//
// The namespace of an enrolled object is the tenant. A writer of its ClusterProfiles can alter what Masthead remembers
// about the clusters of that namespace: that right belongs to the platform's administrators only. A ClusterProfile
// never describes a cluster of another namespace.
//
// Rejected: a sweep that removes every profile which is not in the fleet, because the fleet would have to be known to
// be complete, which is never so with several sources; one reconcile per profile that asks its own source does not need
// it.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it writes
// only to the hub, what it writes about a cluster comes from that cluster's own connection, and text that a workload
// cluster supplies (its version, its errors) is truncated and published in that cluster's profile only.
package inventory
