// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package propagation computes what travels between a claim and its object in the hub. Everything here is pure.
//
// Up: Intent is what the hub shall hold, Applied whether it does. Down: StatusOf is the status that the claim shall
// show, LateSpec the fields that Crossplane has filled in. Patches are made of what changes.
//
// What the user writes travels. What was filled in late is managed by a field manager of its own and never travels
// back. Which fields of a spec are whose is said by the table in package crossplane.
package propagation
