// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope is one pass over one ClusterImport: the results of the importer's steps, for later steps and for the
// status. It also has what the steps share: how a step stops the pass, the requeue delay, and the bounding of foreign
// texts.
//
// A Scope belongs to the goroutine of the pass. Nothing here reads or writes an API server.
//
// What does the owner of one imported cluster gain from the hub or another cluster through this? Nothing: a Scope holds
// the results of one pass, and ends with it. Messages of conditions are bounded and cleaned (BoundedText).
package scope
