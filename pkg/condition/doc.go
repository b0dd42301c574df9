// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition holds what controllers report to users: why something is not as it should be, and when it is
// retried.
package condition
