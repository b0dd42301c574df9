// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report reports the result of a reconcile to users: the hub's status and the condition AgentSynced in the
// claim, an annotation where a definition drops conditions, and events.
//
// Nothing is written twice, not even what a definition drops. Texts of the hub's errors are not reported: they name its
// webhooks and addresses. Metrics count the reasons found, not those that the claim shows: its owner can write the
// claim.
package report
