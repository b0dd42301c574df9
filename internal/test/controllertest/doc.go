// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest is what the tests of the controllers share: the API servers of a package, in lanes, of which
// each parallel test has one to itself; a manager that engages workload clusters as the provider of the fleet does; the
// requests to an API server; and waiting.
//
// It guarantees that nothing is left running when a test ends, also when it fails, and that a test waits for
// conditions, never for time. The test of one controller embeds a Case in its own fixture.
package controllertest
