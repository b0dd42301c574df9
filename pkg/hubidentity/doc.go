// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubidentity distinguishes the hubs whose managers connect to the same workload cluster, by the UID of the
// hub's namespace kube-system, or a value that its operator sets. It guarantees:
//
//   - A workload cluster belongs to one hub at a time: the marker, the CustomResourceDefinition hubs.masthead.dev,
//     names it, and is written with its resource version as a precondition.
//   - What Masthead creates there names its hub (labels, finalizer, field managers). Owner decides by these what may be
//     changed; what belongs to another hub is not touched, even if the marker was deleted or forged. Names without an
//     identity predate hub identities, and belong to the hub that holds the cluster.
//   - A hub that releases a cluster, or from which it is taken over, becomes a predecessor, whose leftovers belong to
//     the next.
//
// The marker is a CustomResourceDefinition because a manager that writes into a cluster may write these anyway; it
// serves no version. It is not protected by a policy, which could be that of a hub that is gone.
//
// What does the owner of one workload cluster gain? Only the loss of the hub, or another one with a working kubeconfig.
package hubidentity
