// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles and evaluates the CEL expressions that users write: those of HealthRules and those of
// references.
//
// It guarantees:
//
//   - An environment has the language and the functions of the policies and the validation rules of Kubernetes v1.36,
//     plus its caller's additions. The version is fixed, so a library upgrade changes the meaning of no expression.
//   - The evaluation of an expression terminates: it costs at most CostLimit, regardless of the size of its input. But
//     CEL adds the cost of a call after the call has returned, so one call can allocate a lot before it is counted.
//     Expressions of untrusted users are therefore compiled by CompileLinear: it has no loops, and only functions whose
//     result is about as large as their arguments.
//   - A compiler error is on one line, with the position in the expression.
package expression
