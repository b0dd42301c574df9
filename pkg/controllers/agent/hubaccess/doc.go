// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubaccess decides which identity reads and writes the hub, and holds a client for each identity in use.
//
// It also interprets the errors of requests to the hub and to workload clusters: what to report to users, whether an
// error resolves by itself, or is no answer at all. The answer to an identity other than the manager names that
// identity; the manager's own name in the hub is not revealed.
//
// The context carries the identity. API returns ErrNoIdentity for a context without one, rather than using the rights
// of the manager.
//
// What can the owner of one workload cluster gain? Their own credentials give them the same rights in the hub as
// without us. Only a token or a client certificate is taken from their kubeconfig, and it is sent only to the hub, at
// the manager's address of it.
package hubaccess
