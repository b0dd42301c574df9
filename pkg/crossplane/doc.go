// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crossplane is what this repository knows of Crossplane's API: which kinds an XRD or an
// InfrastructurePublication offers, and which fields of an object are Crossplane's. Everything here is pure.
//
// The fields are one table, by what the object is (Form): what a user may write and travels (Pushable), what is the
// user's alone and is compared (Users), and what Crossplane fills in and is shown (LateFields).
package crossplane
