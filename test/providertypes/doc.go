// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providertypes holds the managed resources that imports of EKS want, and the fixtures of EKS, against the
// typed structs of Upbound's AWS provider: each decodes strictly. It is a module of its own, so that the provider's
// dependencies, among them parts of Terraform, are none of the manager's.
package providertypes
