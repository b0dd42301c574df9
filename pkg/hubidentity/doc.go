// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubidentity tells the hubs apart whose managers connect to the same workload cluster.
//
// A hub is identified by the UID of its namespace kube-system, or by what its operator sets instead, for example
// because the hub was restored into another cluster.
//
// # Guarantees
//
//   - A workload cluster belongs to one hub at a time. The CustomResourceDefinition hubs.masthead.dev in the workload
//     cluster, the marker, names it. The marker is created, or updated on condition of its resource version, so that of
//     two hubs that claim a cluster at the same time the API server of that cluster lets one succeed.
//   - What Masthead puts into a workload cluster names its hub: a label on objects, the finalizer on claims, and the
//     field managers. Owner decides by them what a manager may change. What names another hub is not touched, also if
//     the marker was deleted or forged.
//   - Names without an identity were written before hubs had one. Whoever holds the cluster owns them.
//   - A hub that releases a cluster, or from which it is taken over with consent, becomes a predecessor. What it left
//     behind belongs to the hub that holds the cluster now.
//
// # Decisions
//
// The marker is a CustomResourceDefinition, because whoever puts something into a cluster needs the rights to create
// and to update these anyway: an upgrade needs no new rights. A Lease or a ConfigMap needs a namespace, which is either
// one that Masthead would have to create, or kube-system, where some managed clusters let nobody write. The definition
// serves no version, so that it adds nothing to what the API server serves. It does not bear the label
// masthead.dev/managed-by, and is not protected by the policy of a hub that is gone.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing but the loss of the hub. Whoever forges the marker has their own cluster disconnected, and whoever deletes it
// lets the next hub that has a working kubeconfig for the cluster have it. Naming predecessors has objects in the own
// cluster treated as the hub's, as the label masthead.dev/managed-by does. The identity and the name of a hub that are
// read from a marker are validated or cut before they are repeated.
package hubidentity
