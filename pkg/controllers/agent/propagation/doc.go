// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package propagation computes what is propagated between a claim and its object in the hub. Everything here is pure.
//
// Up: Intent is the desired object in the hub, Applied reports whether the hub has it. Down: BuildStatus is the status
// that the claim should show, LateSpec the fields that Crossplane has filled in. Patches contain only changes.
//
// User intent is pushed. Late-initialized fields have their own field manager and are never pushed back. The table in
// package crossplane says who owns which fields of a spec.
package propagation
