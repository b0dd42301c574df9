// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubidentity distinguishes the hubs whose managers connect to the same workload cluster.
//
// A hub is identified by the UID of its namespace kube-system, or by a value that its operator sets, for example after
// restoring the hub into another cluster.
//
// # Guarantees
//
//   - A workload cluster belongs to one hub at a time. The CustomResourceDefinition hubs.masthead.dev in the workload
//     cluster, the marker, names it. The marker is created, or updated with its resource version as a precondition, so
//     if two hubs claim a cluster at the same time its API server lets one succeed.
//   - Objects that Masthead creates in a workload cluster name their hub: by a label on objects, the finalizer on
//     claims, and the field managers. By these, Owner decides what a manager may change. Objects of another hub are not
//     touched, even if the marker was deleted or forged.
//   - Names without an identity predate hub identities. The hub that holds the cluster owns them.
//   - A hub that releases a cluster, or from which it is taken over with consent, becomes a predecessor. What it left
//     behind belongs to the hub that now holds the cluster.
//
// # Decisions
//
// The marker is a CustomResourceDefinition, because a manager that writes into a cluster needs the rights to create and
// update these anyway: an upgrade needs no new rights. A Lease or a ConfigMap needs a namespace, either one that
// Masthead would have to create, or kube-system, which is read-only in some managed clusters. The definition serves no
// version, so it adds nothing to the served API. It does not have the label masthead.dev/managed-by, and is not
// protected by the policy of a hub that is gone.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing but the loss of the hub. Owners who forge the marker have their own cluster disconnected, and those who
// delete it let the next hub with a working kubeconfig claim the cluster. Naming predecessors has objects in their own
// cluster treated as the hub's, as the label masthead.dev/managed-by does. The identity and the name of a hub read from
// a marker are validated or truncated before they are repeated.
package hubidentity
