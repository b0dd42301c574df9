// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves the generic references of objects in the workload clusters whose EnrollmentClass enables
// it, and in the hub if the operator asks for it: of every kind whose definition declares spec.references in the shape
// of GenericReference. pkg/references has the rules and the bounds.
//
// It guarantees:
//
//   - A kind is managed as soon as its definition declares references, and no longer than that.
//   - Referenced values are written by server-side apply with a separate field manager, for the observed version of the
//     object, and nothing is written when nothing changed. The condition ReferencesResolved reports the progress, if
//     the status of the kind has conditions; otherwise an event does.
//   - An object that waits is retried when its dependency appears or changes: each source is watched by its name,
//     metadata only, once for all objects that wait for it, and only as long as one does. No kind is watched as a whole
//     because of a reference. At most 256 sources of a cluster are watched, 64 of them for the objects of one
//     namespace; objects beyond these limits are retried every few minutes. A change during a reconcile requeues the
//     object.
//   - Objects whose references are resolved cause no reads and no writes.
//   - Objects without references are not cached. Of a settled one its name is kept, and of any other, and of what it
//     depends on, no more than is needed (content, version). So the number of objects of a kind does not matter; how
//     many of them have references is bounded, but not in the hub.
//   - Secret data is written only to marked fields, also through several objects (declared.marked).
//   - A kind that cannot be watched, or exceeds the limit, is reported in masthead_references_kinds and in the log: no
//     object can report that.
//   - Objects that wait for each other, or would follow each other for ever, get a condition, and are not written.
//   - An object that waits for a grant, or for a kind that is not served, is retried when that appears: the
//     ReferenceGrants of the namespace, or the definition, are watched in the same way. Revoking a grant stops
//     references from following their source.
//   - The state of a cluster is dropped with it, and with its class. A reconcile that ends later leaves nothing behind.
//
// In the hub nothing is resolved unless Options.HubClass names a class. Then the hub is treated as one more cluster,
// except for objects whose references others wrote: those that came from a workload cluster, or were released by one,
// and composites of claims (hasReferencesOfAnother). So a claim's references are never followed with the manager's
// rights in the hub; they were in the cluster that it comes from.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: references
// are read and written with the connection to the cluster that has them, and those that reach the hub with a claim are
// not resolved there. Within the cluster, a user gains no more than references.Tenancy permits, although Masthead can
// read every Secret there. The cost of a cluster with many definitions, objects or sources is bounded.
package references
