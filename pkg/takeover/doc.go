// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover knows the admission policies that keep imported clusters from being taken over by a provider of the
// hub, and finds out whether a hub enforces them.
//
// # Guarantees
//
//   - Verify succeeds only if every policy is in the hub as this program has it, field by field, and bound without an
//     exception, and the hub has just refused, for the reason of the policy, one object of each family that the
//     policies are about. A policy that exists and is not bound, not yet compiled or switched off does not pass.
//   - Nothing is created: the objects are sent as dry runs. Were one created nevertheless, it would be harmless: a
//     managed resource that only observes, a Cluster API object without a cluster.
//   - An error says whether the policies are not enforced (ErrNotEnforced) or whether the hub could not be asked.
//
// # What the policies cannot do
//
// They concern objects that bear the label of an import from their creation on, and, in the namespace of an import,
// Machines and namespaced managed resources that name its cluster. To create an object with the label takes the right
// to create clusterimports/objects, which a cluster administrator has as well. They do not keep anybody from creating a
// managed resource for the same cloud resource that is cluster-scoped or uses another provider configuration, nor from
// changing the ProviderConfig that an import names: its identity should have read-only rights in the cloud.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing: nothing of a workload cluster is read.
package takeover
