// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts tests the Helm charts with Helm itself: they make what the manifests in config/ make, they refuse
// values that they do not know, and they are installed, upgraded and removed on a real API server.
//
// Helm is built from source by hack/tool.sh, out of a Go module of its own, so that Masthead does not depend on it.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it is used in
// tests only.
package charts
