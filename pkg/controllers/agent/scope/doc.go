// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope holds what the steps of one reconcile of a claim share: the facts, the cluster, and the outcome so far.
//
// Writes of a claim's metadata go through PatchClaim, which requires that the claim has not changed since it was read,
// and that the cluster answers with that very claim. An answer with another object does not change the cache.
package scope
