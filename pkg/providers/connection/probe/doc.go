// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe queries an API server for its health, identity, version, and the hub it belongs to. It uses the
// transport of a connection, outside the rate limit and the pace of its clients.
//
// # What it guarantees
//
//   - Each request has a deadline, and at most 64 KiB of its response are read.
//   - Errors are a condition.Error, whose message is stable across attempts and reveals nothing about the manager's
//     network.
//   - A UID is accepted only if it is a UUID as API servers generate them, and a version only if it looks like one.
//   - Only the marker of the hub is written, and only if it is unchanged since it was read.
//
// # Where to change what
//
//   - probe.go: the requests. explain.go: messages for errors.
//   - identity.go: validation of identities. marker.go: reads and writes the marker of the hub; packages hubidentity
//     and connection decide who may claim the cluster.
//
// # What does the owner of one workload cluster gain?
//
// They control the responses. A response is a status, a UUID, a version or a marker, or it is refused. It can
// impersonate another cluster, which package connection handles.
package probe
