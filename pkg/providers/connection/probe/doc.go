// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe asks an API server about itself: how it is, which cluster it is, which version it has, and which hub it
// belongs to. It goes through the transport of a connection, beside the rate limit and the pace of its clients.
//
// # What it guarantees
//
//   - Each question has a deadline, and of its answer 64 KiB are read.
//   - What does not work is a reason.Failure, whose message stays the same from one attempt to the next and tells
//     nothing of the manager's network.
//   - A UID is taken only if it is a UUID as API servers generate them, and a version only if it looks like one.
//   - Nothing is written but the marker of the hub, and that only as it was read.
//
// # Where to change what
//
//   - probe.go: the questions. explain.go: how errors are put into words.
//   - identity.go: what is taken for an identity. marker.go: how the marker of the hub is read and written; whose the
//     cluster may be is decided by packages hubidentity and connection.
//
// # What does the owner of one workload cluster gain?
//
// They choose what is answered. An answer is a status, a UUID, a version or a marker, or it is refused; it can pretend
// to be another cluster, which package connection deals with.
package probe
