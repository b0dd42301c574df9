// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manyclusters plays many workload clusters on one API server, to measure a manager of a thousand.
//
//   - Each cluster has a server name and a token, and so connections of its own.
//   - Each has a kube-system with a UID of its own. Its other namespaces are those of the API server that begin with
//     its name: no cluster sees another's. What is in no namespace is shared.
//   - Lists and watches are answered from one watch for each kind, so that the API server is not what is measured.
//   - Every other request, and each error, is the API server's.
//   - Requests are counted.
package manyclusters
