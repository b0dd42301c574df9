// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discoverytest holds the fixture of the tests of discovery: a hub and a workload cluster, with the definitions
// that a platform team creates and waits for.
package discoverytest
