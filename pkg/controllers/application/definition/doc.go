// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition keeps the CustomResourceDefinition of Applications in the workload clusters as this program has
// it.
//
// A definition that Masthead did not put there, or that another hub did, is never written; one of a newer Masthead is
// used as it is. Nothing is remembered of a cluster but which reason was told about it last: all else is in the
// metadata of the definition there, which is watched. An idle cluster is asked for nothing.
//
// What is wanted, and whether a cluster has it, is in content.go and is pure. What is written is in keeper.go, and what
// is told about it in report.go.
//
// What does the owner of one workload cluster gain? They can forge the metadata by which a definition counts as
// written, and deceive nobody but the users of that cluster. Texts of their API server are repeated bounded.
package definition
