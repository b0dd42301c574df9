// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition has what controllers tell users: why something is not as it should be, and when it is looked at
// again.
package condition
