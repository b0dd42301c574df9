// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocation arbitrates between enrolments that want the same cluster or identifier (Arbiter), a place in their
// class (Quota), or a place to contact a cluster now (Admission). It does no I/O, and identifies enrolments by a key.
//
// # What it guarantees
//
//   - A cluster and an identifier have one holder, which keeps both until it releases them. A release returns exactly
//     the enrolments that were refused because of it.
//   - While the limit of a class does not change, no member loses its place to another, even across a restart.
//   - No kind of contact with clusters waits for another, and no namespace has more than its share of the places of a
//     kind. An enrolment without a place is requeued when it gets one.
//   - Each type has its own lock, held for map operations only, never while calling out.
//
// # Where to change what
//
//   - arbiter.go: who has a cluster. quota.go: who has a place in a class. admission.go: who may talk to a cluster now,
//     and how many may.
//
// # What does the owner of one workload cluster gain?
//
// Their enrolments compete for what is free. Impersonating another cluster does not work while that one is enrolled. An
// unresponsive cluster delays clusters of the same namespace of the hub.
package allocation
