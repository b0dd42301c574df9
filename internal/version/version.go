// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version holds the version of this build.
//
// It guarantees that Version is never empty. What does the owner of one workload cluster gain from the hub or another
// cluster through this? Nothing: it is a constant of the build.
package version

// Version is set by the linker: -ldflags "-X github.com/masthead-dev/masthead/internal/version.Version=v1.2.3".
var Version = "unknown" //nolint:gochecknoglobals // The linker can only set variables.
