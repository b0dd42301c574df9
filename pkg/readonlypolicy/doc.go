// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readonlypolicy is the state that several controllers share about the ValidatingAdmissionPolicy that protects
// Masthead's objects in a workload cluster. The policy exempts one user: Masthead's username as the cluster reports it.
// While that username changes, the policy refuses Masthead's own writes.
//
// # Guarantees
//
//   - A refusal by the policy is not reported as a problem while a changed username can explain it: the
//     username is requested from the cluster again, the policy is rewritten, and the write is retried.
//   - That is bounded: if the cluster confirms the username, or nothing requests it, the refusal is reported.
package readonlypolicy
