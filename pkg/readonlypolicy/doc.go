// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readonlypolicy is what several controllers know of the ValidatingAdmissionPolicy that protects in a workload
// cluster what Masthead put there. The policy lets one user through: the one that the cluster says Masthead is. While
// that user changes, the policy refuses Masthead's own writes.
//
// # Guarantees
//
//   - A refusal by the policy is no problem to be reported as long as it can be about the user: the cluster is asked
//     again as whom it knows Masthead, the policy is rewritten, and the write is tried again.
//   - That is not believed for ever: if the cluster says that the user is as before, or nobody asks it, the refusal is
//     reported.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. Whoever forges the message of a refusal delays the report of it for their own cluster by half a minute, and
// has the cluster asked for a user name once in a minute.
package readonlypolicy
