// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves the generic references of objects in the workload clusters whose EnrollmentClass enables
// it, and in the hub if the operator asks for it: of every kind whose definition declares spec.references in the shape
// of GenericReference. pkg/references has the rules and the bounds.
//
// It guarantees:
//
//   - A kind is looked after as soon as its definition declares references, and no longer than that.
//   - What references fill in is written by server-side apply with a field manager of its own, for the very state of
//     the object that was looked at, and nothing is written when nothing changed. The condition ReferencesResolved says
//     how far it has come, of a kind whose status has conditions; of others an event does.
//   - An object that waits is tried again when what it waits for appears or changes: each source is watched by its
//     name, its metadata only, once for all objects that wait for it, and no longer than somebody does. No kind is
//     watched whole because of a reference. At most 256 sources of a cluster are watched, 64 of them for the objects of
//     one namespace; who waits for more than these is tried again every few minutes. A change while the object is
//     looked at has it looked at once more.
//   - Nothing is read and nothing written for objects whose references are resolved.
//   - Of an object without references nothing is kept, of one that is settled its name, and of any other, and of what
//     it depends on, no more than is needed (content, version). So how many objects of a kind there are does not
//     matter; how many of them have references is bounded, but not in the hub.
//   - What a Secret held goes no further than into marked fields, also over several objects (declared.marked).
//   - A kind that cannot be watched, or is more than are looked after, is in masthead_references_kinds and in the log:
//     no object can say that.
//   - Objects that wait for each other, or would follow each other for ever, get a condition, and nothing is written.
//   - Who waits for a grant, or for a kind that is not served, is tried again when that comes: the ReferenceGrants of
//     the namespace, or the definition, are watched in the same way. A grant that is revoked ends what follows its
//     source.
//   - What is noted of a cluster goes with it, and with its class. A look that ends later leaves nothing behind.
//
// In the hub nothing is resolved unless Options.HubClass names a class. Then the hub is followed as one cluster more,
// but for objects whose references others wrote: what came from a workload cluster, or was released by one, and
// composites of claims (hasReferencesOfAnother). So a claim's references are never followed with the manager's rights
// in the hub; they were in the cluster that it comes from.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: references
// are read and written with the connection to the cluster that has them, and those that travel to the hub with a claim
// are not looked at there. Within the cluster, a user gains no more than references.Tenancy permits, although Masthead
// can read every Secret there. What a cluster that has many definitions, objects or sources costs is bounded.
package references
