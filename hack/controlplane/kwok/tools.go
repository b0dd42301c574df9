// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kwok pins the kwok binary that test/localfleet starts as a process.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
