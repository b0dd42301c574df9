// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover holds the admission policies that prevent a provider of the hub from taking over imported clusters,
// and checks whether a hub enforces them.
//
// # Guarantees
//
//   - Verify succeeds only if every policy is in the hub exactly as in this program, field by field, and bound without
//     an exception, and the hub has just refused, because of the policy, one object of each family that the policies
//     cover. A policy that is unbound, not yet compiled or disabled does not pass.
//   - Nothing is created: the objects are sent as dry runs. If one were created nevertheless, it would be harmless: a
//     managed resource that only observes, a Cluster API object without a cluster.
//   - An error shows whether the policies are not enforced (ErrNotEnforced) or the hub could not be queried.
//
// # What the policies cannot do
//
// They cover objects that have the label of an import from their creation on, and, in the namespace of an import,
// Machines and namespaced managed resources that name its cluster. Creating an object with the label requires the right
// to create clusterimports/objects, which a cluster administrator has as well. They do not prevent creating a managed
// resource for the same cloud resource that is cluster-scoped or uses another provider configuration, nor changing the
// ProviderConfig that an import names: its identity should have read-only rights in the cloud.
package takeover
