// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition computes what a CustomResourceDefinition of the hub is in a workload cluster. Everything here is pure.
//
// DefinitionFor is the content that a cluster shall have, RetainedKind how the kind of one is followed that is not offered any more,
// and ClosedDefinition one that refuses new objects.
//
// What does the owner of one workload cluster gain? A label that he writes on a definition makes it look like ours in his own
// cluster. For the hub it counts only as far as the hub's own definition says the same.
package definition
