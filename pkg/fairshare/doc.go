// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairshare distributes a fixed number of places among mutually untrusted parties: clusters, or namespaces of
// tenants.
//
// It guarantees:
//
//   - At most as many turns hold a place as there are places, and no party holds more than its share.
//   - A free place goes to the party that holds the fewest; of several, to the one whose turn has waited longest. Turns
//     of one party are served in order. So a party that requests a thousand places delays another one only until a
//     place is released.
//   - Nothing blocks but Wait: a waiting turn is notified when it gets its place, and can be cancelled at any time.
//   - Every operation costs O(log n) in the number of waiting parties, however many turns wait.
package fairshare
