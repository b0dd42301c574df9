// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload holds the rights that Masthead needs in a workload cluster, as its administrator applies them. They
// are part of the command line, so that what it applies and what is written down are the same.
package workload

import "embed"

// Files are the rights, and the ServiceAccount that has them.
//
//go:embed *.yaml
var Files embed.FS
