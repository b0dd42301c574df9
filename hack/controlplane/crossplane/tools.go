// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package crossplane pins the crossplane binary that test/localfleet starts as a process.
package crossplane

import _ "github.com/crossplane/crossplane/v2/cmd/crossplane"
