// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget shares one amount of memory among the clusters that this process serves. There is one Budget for the
// process, an Account for each connection to a cluster, and a Holder for each thing that is kept or under way on the
// cluster's behalf.
//
// The rule:
//
//  1. What fits is granted, whoever asks: nobody is refused anything while the budget has room.
//  2. Every EnrollmentClass with clusters has an equal share of the budget, and every cluster an equal part of its
//     class's share.
//  3. When the budget is full, whoever would stay within its equal share is granted what it asks for. Room is made by
//     the one who holds most: the class that holds most, in it the cluster that holds most, in it the largest Holder,
//     which is told to yield and gives back everything it holds.
//  4. Whoever would have more than its equal share is refused when the budget is full, unless it asks to have no more
//     than half of what the one who holds most has. The half keeps two large clusters from taking turns in displacing
//     each other.
//
// It follows that nobody is refused or displaced who holds no more than its equal share; TestModel checks that at every
// step. Until a Holder that was told to yield has done so, an eighth of the budget more can be in use; who would need
// more than that is told to try again (ErrBusy).
//
// Amounts are estimates of bytes, in steps of 16 KiB: what a Holder has below one step is not counted.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing but what nobody within its share needs. Enrolling one API server many times makes many clusters, but in one
// class they have that class's share together; EnrollmentClass spec.maxClusters limits how many there are. The error
// that tells a cluster that it is over its share names that cluster and no other.
package budget
