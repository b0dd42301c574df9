// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health computes the health of objects. docs/health.md has the tables, and testdata a folder for each kind
// with an object for each case. HealthRules (CEL) come first, then the shipped library, then kstatus for Kubernetes'
// own kinds, unless it does not match what users expect or depends on the time, then conditions, phase and other common
// fields (conditions.go, words.go, generic.go, parts.go). It guarantees:
//
//   - A Result depends on the object alone: no clock, and no number that changes by itself.
//   - Assess does not panic on any object, nor change it. What cannot be understood is Unknown, never Healthy: nothing
//     that is False beside what is well, unless Ready sums up. No rule of the library outweighs a condition that it
//     does not know and whose type says failure. A kind without a reporting controller is Healthy only by an explicit
//     rule.
//   - Texts are truncated and stripped of control characters. The cost of a rule, and the number of cached kinds, are
//     bounded. A rule with a wildcard never reads whole objects whose metadata suffices.
//
// Rejected: a grace period for unobserved objects, as it needs a clock; and that a custom resource without a status is
// healthy.
package health
