// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles and evaluates the CEL expressions that users write: those of HealthRules and those of
// references.
//
// It guarantees:
//
//   - An environment has the language and the functions that the policies and the validation rules of Kubernetes v1.36
//     have, and what its maker adds. The version is fixed, so that a new version of a library changes the meaning of no
//     expression.
//   - The evaluation of an expression ends: it costs no more than CostLimit, however large its input is. But CEL adds
//     the cost of a call after the call has returned, so that one call can allocate a lot before it is counted.
//     Expressions of people who are not trusted with the manager's memory are therefore compiled by CompileLinear: it
//     has no loops, and only functions whose result is about as large as what they are called with.
//   - What the compiler says is on one line, with the position in the expression.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: an expression
// can read its input and nothing else, and what it costs is bounded; if he writes it himself, it is linear.
package expression
