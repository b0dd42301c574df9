// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet connects the command line to the hub and the workload clusters, with the rights of its user.
//
// The hub is that of the user's kubeconfig. A workload cluster is reached with the kubeconfig in the hub that Masthead
// itself uses, if the user may read that Secret; the user then has Masthead's rights there. If the user may not, the
// command reports that, and still gives the rest of the answer.
//
// It guarantees:
//
//   - A kubeconfig from a Secret is treated as Masthead treats it (pkg/providers/credentials): it runs no program on
//     the user's machine, reads no file there, and connects to no refused address. Its credentials are sent to its own
//     host only, redirects are refused, and answers are bounded before they are decoded (pkg/limits).
//   - Of a Secret, only its metadata is ever read through a Side. The kubeconfig is read in one place, workload.go, and
//     not passed on.
//   - An unresponsive cluster costs a deadline, not the answer about the others.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Their API server's
// answers are shown to the user who requested them, cleaned (package terminal). It learns that there was a request, and
// from which address.
package fleet
