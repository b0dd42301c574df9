// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind Application of the group apps.masthead.dev, which is served in every workload cluster.
//
// It is the Application of the KEP "Kubernetes Application API" (draft-20180115): every field of the KEP's Go type is here under
// the KEP's name, and what is added beside them is marked as ours in its comment. Where the KEP contradicts itself,
// docs/design/application.md says what was chosen and why.
//
// It guarantees that the KEP's validation needs no webhook: it is in the schema and in CEL rules, which the API server of the
// workload cluster evaluates itself. It holds types and constants only and imports nothing of Masthead.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: an Application lives in
// a workload cluster, names objects of its own namespace only, and what is summed up of it in the hub is bounded. Everything in
// it is untrusted input.
//
// +kubebuilder:object:generate=true
// +groupName=apps.masthead.dev
package v1alpha1
