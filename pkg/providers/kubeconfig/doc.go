// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig is one part of pkg/providers: see doc.go of connection.
package kubeconfig
