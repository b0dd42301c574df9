// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedexample is a managed resource as the author of a provider writes it, with references embedded. It
// shows that the Go type can be embedded, and the schema snippet for authors of XRDs and CRDs is taken out of the CRD
// that is generated from it.
//
// +kubebuilder:object:generate=true
// +groupName=network.example.org
// +versionName=v1alpha1
package managedexample
