// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report turns what was measured into figures and tables.
package report
