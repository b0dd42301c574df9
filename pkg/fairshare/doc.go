// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairshare shares out a fixed number of places among parties that do not trust each other: clusters, or
// namespaces of tenants.
//
// It guarantees:
//
//   - No more turns hold a place at a time than there are places, and no party holds more than its share of them.
//   - A place that is free goes to the party that holds the fewest, of these to the one whose turn waits longest;
//     within a party the turns are served in order. So a party that asks for a thousand places delays another one by no
//     more than it takes until a place is given back.
//   - Nobody is blocked: a turn that has to wait is told when it has its place, and may be given up at any time.
//   - Every operation costs O(log n) in the number of parties that wait, however many turns wait.
package fairshare
