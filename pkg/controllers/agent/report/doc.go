// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report tells users what became of their claims: the status of the hub and the condition AgentSynced in the
// claim, an annotation where a definition drops conditions, and events.
//
// Nothing is written that is there already, and what a definition drops is not told twice. The words of the hub's
// errors are not told: they name its webhooks and addresses. Reasons are counted as they were found, not as the claim
// shows them: the claim is its owner's to write.
package report
