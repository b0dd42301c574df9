// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the commands of kubectl-masthead, the plugin for kubectl. docs/cli.md is its page.
//
// Each command is a file: it fetches (package fleet), has something pure decide what there is to say, and prints it
// (package terminal). Commands that look change nothing.
//
// It guarantees:
//
//   - What is printed is cleaned of what a terminal would obey, in every format.
//   - No data of a Secret is printed or written. Secrets are known by their metadata; the exception is the kubeconfig
//     of a workload cluster, with which that cluster is asked.
//   - What could not be looked at is said, beside what was found. It is never taken for well.
//   - The exit code is 0 if the question was answered, 1 if not, and 2 if it could not be understood.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: the program
// runs with the rights of whoever starts it, shows them what their rights let them see, and sends nothing of one
// cluster to another. What the owner writes into their objects is shown, and does nothing to the terminal.
package cli
