// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds types that other kinds embed: GenericReference, for the field spec.references of any kind.
//
// It guarantees that the generated schema needs no webhook: a reference by itself is validated by the schema and by CEL
// rules, within the cost that an API server allows a CRD. It holds types and constants only, and imports nothing of
// Masthead, so that a provider can embed them without anything else.
//
// +kubebuilder:object:generate=true
package v1alpha1
