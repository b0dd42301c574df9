// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope has what the steps of one reconcile of a claim share: the facts, the cluster, and what came of the
// steps so far.
//
// Who writes a claim's metadata does it through PatchClaim: on condition that the claim is as it was looked at, and
// that the cluster answers with that very claim. A cluster that answers with another object changes nothing of what
// is known.
package scope
