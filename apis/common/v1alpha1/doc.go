// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds types that other kinds embed: GenericReference, for the field spec.references of any kind.
//
// It guarantees that the schema that is generated from the types needs no webhook: what can be wrong about a reference by itself is in
// the schema and in CEL rules, within the cost that an API server allows a CRD. It holds types and constants only, and imports nothing of
// Masthead, so that a provider can embed them without anything else.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: the types say what is asked
// for, and pkg/references decides what is given. Everything in them is untrusted input.
//
// +kubebuilder:object:generate=true
package v1alpha1
