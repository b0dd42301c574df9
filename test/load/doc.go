// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load puts a mixed load of claims on the workload clusters of a fleet, records what was requested, and checks
// whether the fleet contains exactly that: nothing lost, nothing doubled, no finalizer left, every connection Secret
// right.
//
// The load is chosen at random from a seed. In each cluster claims are created, changed, deleted (some of them
// immediately) and created again with the same name; a part of the names is shared, so that clusters compete for them;
// and connection Secrets are deleted and overwritten.
//
// Each creation of a claim is a new incarnation, named by a label that is carried to the hub. A watch of the hub
// records which objects an incarnation ever had there: more than one means that what Crossplane provisioned for a claim
// was lost and provisioned again. It also records who had each name there, and what the claims reported of that; see
// package ownership.
package load
