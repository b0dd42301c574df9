// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-masthead is a plugin for kubectl: `kubectl masthead`. It shows the fleet, and says why something does
// not work. docs/cli.md is its page.
//
// It guarantees that nothing is decided here: the commands are in internal/cli.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? See internal/cli.
package main
