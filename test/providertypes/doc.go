// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providertypes checks the managed resources that imports of EKS want, and the fixtures of EKS, against the
// typed structs of Upbound's AWS provider: each decodes strictly. It is a separate module, so that the provider's
// dependencies, among them parts of Terraform, are not dependencies of the manager.
package providertypes
