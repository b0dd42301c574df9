// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthcases reads objects together with the health that they should have, for the tests of pkg/health and for
// `make health-corpus`: folders in the shape of Argo CD's resource_customizations, and the fixtures of Masthead's own
// library.
//
// It reads files of whoever runs it and is part of no program that runs in a cluster. What does the owner of one
// workload cluster gain from the hub or another cluster through this? Nothing.
package healthcases
