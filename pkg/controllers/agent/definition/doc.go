// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition keeps the CustomResourceDefinitions of the published claim kinds in the workload clusters, and
// thereby decides which kinds are synchronised where.
//
// DecidePhase is a pure function from watched state to the phase of one definition in one cluster; the Reconciler
// executes the phase. A definition with another owner is never written. One with objects is never deleted
// (withdrawal.go). DefinitionFor returns the content that a cluster shall have, RetainedKind how a kind that is no
// longer offered is followed, and ClosedDefinition a definition that refuses new objects; these are pure, too.
//
// What does the owner of one workload cluster gain? Labelling a definition makes it look like ours in their own
// cluster. For the hub it counts only as far as the hub's own definition says the same.
package definition
