// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crossplane describes Crossplane's API: which kinds an XRD or an InfrastructurePublication offers, and which
// fields of an object are Crossplane's. All functions are pure.
//
// The fields are in one table, by the kind of object (Form): fields that a user may write and that are pushed
// (Pushable), fields that are the user's alone and are compared (Users), and late-initialized fields that are shown
// (LateFields).
package crossplane
