// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token makes the tokens with which Masthead reads imported clusters: with the key of a Google service account,
// with the secret of an Azure service principal, or in exchange for a token of a ServiceAccount of the hub. It also
// keeps those of ServiceAccounts of imported clusters, which package workload asks for.
//
// Tokens are in memory alone, and are replaced before they expire. A token that works is given while its endpoint
// fails. An endpoint that gives none is left alone for longer each time, whatever leads to a look at the import.
//
// # Where to change what
//
//   - how long tokens are used, and how failures are retried: tokens.go;
//   - what is exchanged for what, at which endpoints: federation.go;
//   - what is counted: metrics.go.
//
// # What does the owner of one imported cluster gain from the hub or another cluster through this?
//
// Nothing. Tokens are kept by import and by everything with which they were asked for, so that none is given to another
// import or sent to another API server. Secrets are sent to the endpoints that the operator allows, redirects are not
// followed, answers are bounded, and no error repeats what an endpoint answered. Nothing that an import or a key file
// names becomes a label of a metric.
package token
