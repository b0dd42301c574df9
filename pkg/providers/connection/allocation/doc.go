// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocation decides between enrolments that want the same: a cluster or an identifier (Arbiter), a place in
// their class (Quota), a place to talk to a cluster now (Admission). It talks to nobody, and knows enrolments by a key.
//
// # What it guarantees
//
//   - A cluster and an identifier have one holder, which keeps both until it releases them. Who was refused because of
//     what has been released is named, and nobody else.
//   - While the limit of a class does not change, nobody loses a place in it to another, also over a restart.
//   - No kind of contact with clusters waits for another one, and no namespace has more than its share of the places of
//     a kind. Who finds no place is woken when it has one.
//   - Each has a lock of its own, which is held for operations on maps only, never while calling out.
//
// # Where to change what
//
//   - arbiter.go: who has a cluster. quota.go: who has a place in a class. admission.go: who may talk to a cluster now,
//     and how many may.
//
// # What does the owner of one workload cluster gain?
//
// Their enrolments compete for what is free. That a cluster says it is another one is of no use while that one is
// enrolled, and that it does not answer delays those of the same namespace of the hub.
package allocation
