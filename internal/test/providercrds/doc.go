// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providercrds gives tests the real CRDs of the Crossplane providers and of the Cluster API providers for AWS,
// Azure and Google Cloud, and those of Cluster API core. They are read from the source of the Go modules that the
// go.mod files of hack/providers and hack/controlplane pin; no code of the providers is compiled, and nothing is copied
// into the repository.
//
// # Guarantees
//
//   - A CRD has the schema of the provider's release, with its validation rules and its defaults. Descriptions are left
//     out: they make up most of a CRD of a megabyte, and an API server keeps them in memory.
//   - The modules pinned for Azure and Google Cloud are older than their namespaced groups. The CRDs of those are made
//     from the cluster-scoped ones, with what the newest releases changed in the fields that imports read. With the
//     variable MASTHEAD_PROVIDER_CRDS, the tests run with the CRDs of a checkout of the newest releases instead.
//   - It serves only the version that imports read. Several of these CRDs have versions with different schemas that
//     only the provider's webhook can convert.
//   - A CRD of a Cluster API provider has the label by which Cluster API core finds the version that fulfils its
//     contract. The providers add it when they are built for release.
package providercrds
