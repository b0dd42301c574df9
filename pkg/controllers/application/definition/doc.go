// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition keeps the CustomResourceDefinition of Applications in the workload clusters in line with this
// program's.
//
// A definition that Masthead did not install, or that another hub did, is never written; one of a newer Masthead is
// used as is. No state is kept per cluster: all is in the metadata of the definition there, which is watched. An idle
// cluster receives no requests.
//
// content.go computes the wanted definition and compares it with a cluster's, and is pure. keeper.go writes it.
//
// What does the owner of one workload cluster gain? They can forge the metadata that marks a definition as written,
// which misleads only users of that cluster. Texts of their API server are repeated bounded.
package definition
