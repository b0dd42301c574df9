// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget shares a memory budget among the clusters that this process serves: one Budget per process, an Account
// per connection, a Holder for each item that is stored or in progress. The rule:
//
//   - While the budget has room, every request is granted. Every EnrollmentClass with clusters has an equal share, and
//     every cluster an equal part of it.
//   - When it is full, a cluster within its share is granted, and the largest user makes room: the largest Holder of
//     the largest cluster of the largest class yields. A cluster beyond its share is refused, unless it would hold no
//     more than half of what the largest holds; the half keeps two large clusters from displacing each other.
//   - Answers in flight of a cluster up to 256 KiB are not counted and never refused: a fleet of alike clusters would
//     stall.
//
// So a cluster within its share is never refused or displaced (TestModel). Until a Holder has yielded, usage can exceed
// the budget by an eighth. Amounts are estimates in steps of 16 KiB.
//
// What does the owner of one workload cluster gain? Memory that no cluster within its share needs. Enrolling one API
// server many times shares one class's share; maxClusters limits the number.
package budget
