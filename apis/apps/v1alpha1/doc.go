// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind Application of the group apps.masthead.dev, which every workload cluster serves.
//
// It implements the KEP "Kubernetes Application API" (draft-20180115): every field of the KEP's Go type is here under
// the KEP's name, and additions are marked as Masthead's in their comments. Where the KEP contradicts itself,
// docs/design/application.md explains the choice.
//
// It guarantees that the KEP's validation needs no webhook: it is in the schema and in CEL rules, which the workload
// cluster's API server evaluates. It holds types and constants only and imports nothing of Masthead.
//
// +kubebuilder:object:generate=true
// +groupName=apps.masthead.dev
package v1alpha1
