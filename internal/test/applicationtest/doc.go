// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applicationtest holds the fixture of the tests of Applications: a hub and a workload cluster, with what users
// create there and wait for.
package applicationtest
