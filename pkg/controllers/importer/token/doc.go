// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token makes the tokens with which Masthead reads imported clusters: with the key of a Google service account,
// with the secret of an Azure service principal, or in exchange for a token of a hub ServiceAccount. It also caches
// those of ServiceAccounts of imported clusters, which package workload requests.
//
// Tokens are only in memory, and are replaced before they expire. A working token is used while its endpoint fails. An
// endpoint that issues none is retried less and less often, regardless of what triggers a pass over the import.
//
// # Where to change what
//
//   - how long tokens are used, and how failures are retried: tokens.go;
//   - to which endpoints, and other servers, credentials may be sent: allowed.go;
//   - which token is exchanged for which, at which endpoints: federation.go;
//   - metrics: metrics.go.
//
// # What does the owner of one imported cluster gain from the hub or another cluster through this?
//
// Nothing. Tokens are cached per import and per everything with which they were requested, so that none is given to
// another import or sent to another API server. Secrets are sent to the endpoints that the operator allows, redirects
// are not followed, answers are bounded, and no error repeats an endpoint's answer. Nothing that an import or a key
// file names becomes a metric label.
package token
