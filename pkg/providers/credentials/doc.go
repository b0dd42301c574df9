// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials turns kubeconfigs, which are untrusted input, into client configurations.
//
// # Guarantees
//
//   - Nothing in a kubeconfig makes the manager run a program, load a plugin, read one of its files, send a password or
//     act as another user; that is refused and cannot be allowed. Unverified TLS and proxies are refused unless the
//     operator allows them. Plain http, and addresses with a user, a query or a fragment, are refused.
//   - The address of the API server is not link-local, unspecified, multicast or that of a cloud's metadata service,
//     and not loopback unless the operator allows it (on a developer's machine the clusters run there, in a Pod nothing
//     does that a kubeconfig should reach). Parse checks addresses, a dialer must check what names resolve to:
//     Options.CheckAddress. The operator can deny further networks; what is told of these is one sentence, whatever is
//     there.
//   - Exactly one context counts: the current one, or the only one. Keys that are there twice, and two entries of the
//     name that is used, are refused.
//   - Certificates and keys are read when the kubeconfig is, so that a bad one is an error that says so.
//   - Errors hold no secret material: no value of the kubeconfig is repeated in them but a refused IP address, and
//     neither is the text of a parser's error, which may quote its input. A fuzz test holds this.
//   - Compare compares by meaning. In particular, it tells a rotated token, which is swapped in a live connection, from
//     what needs a new one.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing is read from a workload cluster here. Who may write a kubeconfig Secret in the hub makes the manager connect
// to an address of their choice, from the manager's place in the network, and present the credentials of that same
// kubeconfig: they gain a TLS connection to, and one bit about, hosts that the manager can reach and that are not
// refused. Credentials of other clusters, or of the manager, are never sent there.
package credentials
