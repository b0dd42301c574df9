// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of kubectl-masthead, the plugin for kubectl. docs/cli.md documents them.
//
// Each command is a file: it fetches (package fleet), computes the answer in a pure package, and prints it (package
// terminal). Read commands change nothing.
//
// It guarantees:
//
//   - Output is stripped of terminal control sequences, in every format.
//   - No data of a Secret is printed or written. Only metadata of Secrets is read, except for the kubeconfig of a
//     workload cluster, which is used to connect to that cluster.
//   - What could not be read is reported with the results. It never counts as healthy.
//   - The exit code is 0 if the question was answered, 1 if not, and 2 for a usage error.
package cli
