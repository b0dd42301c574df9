// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials turns kubeconfigs, which are untrusted input, into client configurations.
//
// It guarantees:
//
//   - Nothing in a kubeconfig makes the manager run a program, load a plugin, read one of its files, send a password or
//     act as another user; this is always refused. Unverified TLS and proxies are refused unless the operator allows
//     them; plain http, and addresses with a user, a query or a fragment, are refused.
//   - The address of the API server is not link-local, unspecified, multicast or that of a cloud's metadata service,
//     and not loopback unless the operator allows it. Parse checks addresses, and a dialer must check what names
//     resolve to: Options.CheckAddress. The operator can deny further networks; their error message is always the same.
//   - Exactly one context is used: the current one, or the only one. Duplicate keys, and two entries of the used name,
//     are refused.
//   - Errors contain no secrets: they repeat no value of the kubeconfig except a refused IP address, and not the text
//     of a parser's error.
//   - Compare compares by meaning. In particular, it distinguishes a rotated token, which is swapped in a live
//     connection, from changes that need a new one.
//
// What does a user gain who may write a kubeconfig Secret in the hub? The manager connects from its network to an
// address of their choice that is not refused, with the credentials of that kubeconfig and no others, and the condition
// says whether something listens there, speaks TLS, and what is wrong with its certificate.
package credentials
