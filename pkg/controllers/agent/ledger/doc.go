// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger has what is kept in memory between two reconciles: one entry for each claim, the creations in the hub
// that may be under way, what watches report of claims that are being reconciled, and which clusters create many claims
// right now.
//
// Everything here belongs to one claim or one cluster and goes with it: a cluster costs as much memory as it has
// claims. Nothing that one cluster does changes what is kept of another; that a cluster has part in a burst is
// decided by its own share of it. A cluster that reports a change of a claim under the version of another one hides it
// from that claim alone.
package ledger
