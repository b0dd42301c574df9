// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what is done about a claim. Everything here is pure: Decide makes a Plan of Facts, and asks
// nobody.
//
// A plan has steps, which go up to the hub and change the claim, and Down, which is what flows from the hub to the
// claim whatever becomes of the steps. Whoever carries out a step does so on condition that what it writes is as the
// plan saw it.
//
// What does the owner of one workload cluster gain? By annotations he chooses among the targets that his class allows,
// and asks for more care with what is his, or for nothing to be done with it. Only objects that name his claim as their
// source are his, and of these only the one that the claim records or that is where the claim goes.
package plan
