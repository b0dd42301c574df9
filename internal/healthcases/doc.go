// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthcases reads objects with their expected health, for the tests of pkg/health and for `make
// health-corpus`: folders in the layout of Argo CD's resource_customizations, and the fixtures of Masthead's own
// library.
//
// It reads local files and is part of no program that runs in a cluster. What does the owner of one workload cluster
// gain from the hub or another cluster through this? Nothing.
package healthcases
