// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides how a claim is reconciled. Everything here is pure: Decide computes a Plan from Facts alone.
//
// A plan has steps, which write to the hub and to the claim, and Down, which flows from the hub to the claim regardless
// of the steps' result. A step's write is conditional on the state that the plan saw.
//
// What can the owner of one workload cluster gain? With annotations they choose among the targets that their class
// allows, and ask for more care with their objects, or to leave them alone. They own only objects that name their claim
// as the source, and of these only the one that the claim records or that is at the claim's target.
package plan
