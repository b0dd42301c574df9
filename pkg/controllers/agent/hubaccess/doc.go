// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubaccess decides with whose rights the hub is read and written, and holds a client for each identity in use.
//
// The identity goes with the context. Whoever uses API with a context for which nobody has decided gets ErrNoIdentity,
// rather than the rights of the manager.
//
// What does the owner of one workload cluster gain? With credentials of his own he has in the hub what these give him
// without us. Only a token or a client certificate is taken from his kubeconfig, and only the hub sees it, at the
// manager's address of it.
package hubaccess
