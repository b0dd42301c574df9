// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the group fleet.masthead.dev, which live in the hub and configure how Masthead
// manages the clusters of its fleet, and the labels, annotations and finalizers that Masthead sets on, or reads from,
// objects of other kinds.
//
// It guarantees that every value which the schema accepts has an effect: unimplemented behaviour is not in the schema.
// It holds types and constants only and imports nothing of Masthead, so that other programs can import it without
// importing a controller.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.masthead.dev
package v1alpha1
