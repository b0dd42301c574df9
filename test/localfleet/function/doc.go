// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package function is the composition function of the local fleet: a Crossplane function that does what a test
// requests.
//
// It runs as a real function does (a gRPC server with mutual TLS that Crossplane dials), but instead of a fixed
// composition it takes its orders from annotations of the composite resource, which Crossplane copies from the claim:
// withhold the connection details, stay unready for a time, fail, compose Secrets and ConfigMaps. Without any of
// these annotations the composite is ready at once and its connection details are complete.
//
// What it guarantees: the same composite gives the same answer. Nothing is random and nothing is remembered between
// calls, so that Crossplane writes nothing when nothing changed; the password changes exactly when spec.version does.
package function
