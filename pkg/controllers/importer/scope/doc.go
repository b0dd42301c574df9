// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope is one look at one ClusterImport: what the steps of the importer found, for those that follow and for
// the status. It is also what they have in common: how a step stops the look, the names of what an import makes, how
// soon an import is looked at again, and how texts are bounded that others wrote.
//
// A Scope belongs to the goroutine that looks. Nothing here reads or writes an API server.
//
// What does the owner of one imported cluster gain from the hub or another cluster through this? Nothing: a Scope holds
// what one look found, and ends with it. Messages of conditions are bounded and cleaned (BoundedText).
package scope
