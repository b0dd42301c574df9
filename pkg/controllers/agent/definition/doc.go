// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition keeps the CustomResourceDefinitions of the claim kinds that the hub publishes in the workload
// clusters, and thereby decides which kinds are synchronised where.
//
// PhaseOf is a pure function from what watches know to the phase of one definition in one cluster; the Reconciler
// carries out what the phase asks for. A definition of somebody else is never written. One that has objects is never
// deleted (withdrawal.go). DefinitionFor is the content that a cluster shall have, RetainedKind how the kind of one is
// followed that is not offered any more, and ClosedDefinition one that refuses new objects; these are pure, too.
//
// What does the owner of one workload cluster gain? A label that he writes on a definition makes it look like ours in
// his own cluster. For the hub it counts only as far as the hub's own definition says the same.
package definition
