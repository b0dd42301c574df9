// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest is what the tests of the controllers share: the API servers of a package, in lanes of which a
// test that runs beside others has one to itself, a manager that engages workload clusters as the provider of the fleet
// does, what is asked of an API server, and waiting.
//
// It guarantees that nothing is left running when a test ends, also when it fails, and that a test waits for
// conditions, never for time. A test that is about one controller embeds a Case in a fixture of its own.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it is used in
// tests only.
package controllertest
