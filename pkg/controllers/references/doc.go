// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves the generic references of objects in the workload clusters whose EnrollmentClass enables it: of every kind
// whose definition declares spec.references in the shape of GenericReference. pkg/references has the rules and the bounds.
//
// It guarantees:
//
//   - A kind is looked after as soon as its definition declares references, and no longer than that.
//   - What references fill in is written by server-side apply with a field manager of its own, for the very state of the object that was
//     looked at, and nothing is written when nothing changed. The condition ReferencesResolved says how far it has come, of a kind whose
//     status has conditions; of others an event does.
//   - An object that waits is tried again when what it waits for appears or changes: each source is watched by its name, its metadata only,
//     once for all objects that wait for it, and no longer than somebody does. No kind is watched whole because of a reference. At most
//     256 sources of a cluster are watched; who waits for more than these is tried again every few minutes.
//   - Nothing is read and nothing written for objects whose references are resolved.
//   - Objects that wait for each other, or would follow each other for ever, get a condition, and nothing is written.
//
// Nothing is resolved in the hub: a claim's references came from a workload cluster, and would be resolved there with the manager's rights.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: references are read and written
// with the connection to the cluster that has them. Within the cluster, a user gains no more than references.Tenancy permits, although
// Masthead can read every Secret there. What a cluster that has many definitions, objects or sources costs is bounded.
package references
