// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery mirrors what the hub offers into workload clusters: read-only copies of its
// CompositeResourceDefinitions and Compositions (and of the kinds of Crossplane 0.10 to 0.12) with their definitions.
// It also makes each cluster reject changes to what Masthead put there. It guarantees:
//
//   - A copy has name, spec, status and users' labels of its original, and nothing else of the hub. Changes made in the
//     cluster are reverted; nothing flows to the hub but events.
//   - An object without our label, or of another hub, is never overwritten or deleted. A cluster with a Crossplane of
//     its own is left alone, and an object with a foreign finalizer is never deleted.
//   - No decision is made about a kind until its state in the hub is known. Nothing is rewritten that is already there.
//   - The hub's objects are held once; of workload clusters only metadata is.
//
// Copies are written by full updates, since fields that another client added must go. Definitions of copies have no
// status subresource, so that one request writes a copy. Un-enrolment removes copies and policy while the cluster is
// connected, for at most half a minute. Between the check that a definition has only copies and its deletion, another
// object can be created and is deleted with it: Kubernetes has no precondition for that.
//
// What does the owner of one workload cluster gain? What the class shows: Compositions contain what their authors
// wrote, and a class can keep them in the hub. Nothing that the cluster reports selects what is copied. A lie about
// Masthead's username, or a forged label, harms their own cluster only.
package discovery
