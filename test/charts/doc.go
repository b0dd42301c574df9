// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts tests the Helm charts with Helm itself: they render the same objects as the manifests in config/, they
// reject values that they do not know, and they are installed, upgraded and removed on a real API server.
//
// The script hack/tool.sh builds Helm from source, in its own Go module, so that Masthead does not depend on it.
package charts
