// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget shares a memory budget among the clusters that this process serves. There is one Budget per process,
// an Account per connection to a cluster, and a Holder for each item that is stored or in progress for the cluster.
//
// The rule:
//
//  1. While the budget has room, every request is granted.
//
//  2. Every EnrollmentClass with clusters has an equal share of the budget, and every cluster an equal part of its
//     class's share.
//
//  3. When the budget is full, a cluster that would stay within its equal share is granted its request. The largest
//     user makes room: in the class that holds most, in its cluster that holds most, the largest Holder is told to
//     yield and releases everything it holds.
//
//  4. When the budget is full, a cluster that would exceed its equal share is refused, unless it would hold no more
//     than half of what the largest user holds. The half prevents two large clusters from displacing each other in
//     turn.
//
//  5. Answers in flight of a cluster that hold no more than 256 KiB together are not counted, and never refused: a
//     fleet of alike clusters that fills the budget would stall as a whole, because none holds more than the others.
//     At worst, this is memory beside the budget for each cluster.
//
// So a cluster that holds no more than its equal share is never refused or displaced; TestModel checks that at every
// step. Until a Holder that was told to yield has done so, usage can exceed the budget by an eighth; requests beyond
// that get ErrBusy and must be retried.
//
// Amounts are estimates in bytes, in steps of 16 KiB: less than one step of a Holder is not counted.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Only memory that no cluster within its share needs. Enrolling one API server many times makes many clusters, but in
// one class they share that class's share; EnrollmentClass spec.maxClusters limits their number. The error about an
// exceeded share names that cluster and no other.
package budget
