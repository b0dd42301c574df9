// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the programs that are measured, and reads how much CPU time and memory they use.
package process
