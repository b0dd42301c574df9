// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet is how the command line reaches the hub and the workload clusters, with the rights of whoever runs it.
//
// The hub is where the user's kubeconfig leads. A workload cluster is reached with the kubeconfig in the hub that
// Masthead itself uses, if the user may read that Secret; the user then has there what Masthead has. Who may not is
// told so, and the rest of the answer is given all the same.
//
// It guarantees:
//
//   - A kubeconfig out of a Secret is treated as Masthead treats it (pkg/providers/credentials): it runs no program on
//     the user's machine, reads no file there, and leads to no address that is refused. Its credentials are sent to its
//     own host only, redirects are refused, and what is answered is bounded before it is decoded (pkg/bounded).
//   - Of a Secret, only its metadata is ever read through a Side. The kubeconfig is read in one place, workload.go, and
//     given to nobody.
//   - A cluster that does not answer costs a deadline, not the answer about the others.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? What their API server
// answers is shown to whoever asked about it, cleaned (package terminal). It learns that somebody looked, and from
// which address.
package fleet
