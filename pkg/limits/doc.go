// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits keeps what mutually untrusted clusters and tenants take of this process within bounds. It has three
// nouns:
//
//   - A Scanner reads a JSON text from an untrusted API server as it arrives, and refuses it at the first byte that
//     exceeds one of its Limits, before anything is decoded. 3 bytes of JSON, "{},", become 280 bytes as a
//     PartialObjectMetadata: a limit on bytes does not limit memory, but the Cost does. Text that a Scanner passes
//     completely is valid for encoding/json. A Body puts a Scanner in front of an http.Response's body. Every refusal
//     is an *Error, which contains nothing that the server sent.
//   - A Budget shares memory: an Account per connection, a Holder for each item that is stored or in progress. Every
//     EnrollmentClass with clusters has an equal share, and every cluster an equal part of it. While there is room,
//     everything is granted. When it is full, the largest Holder yields to a cluster within its share, which is never
//     refused or displaced (TestModel); a cluster beyond its share is refused, unless it would hold no more than half
//     of what the largest holds. Answers in flight of a cluster up to 256 KiB are not counted. Until a Holder has
//     yielded, usage can exceed the budget by an eighth. Amounts are estimates in steps of 16 KiB.
//   - A Semaphore distributes a fixed number of places. No party holds more than its share, and a free place goes to
//     the party that holds the fewest. Nothing blocks but Wait. Slots wake the keys of a work queue instead.
//
// What does the owner of one workload cluster gain? Memory and places that no other party within its share needs.
// Enrolling one API server many times shares one class's share; maxClusters limits the number.
package limits
