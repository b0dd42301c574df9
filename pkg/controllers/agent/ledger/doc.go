// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger holds the in-memory state between two reconciles: one entry for each claim, the creations in the hub
// that may be in flight, and the watch events of claims being reconciled.
//
// All state belongs to one claim or one cluster and is dropped with it: memory is proportional to a cluster's claims.
// No cluster can change the state of another. A cluster that reports a change of a claim under the version of another
// one hides it from that claim alone.
package ledger
