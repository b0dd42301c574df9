// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves the generic references of objects in the workload clusters whose EnrollmentClass enables
// it, and in the hub if the operator asks for it, of every kind whose definition declares spec.references.
// pkg/references has the rules and the bounds. It guarantees:
//
//   - Values are written by server-side apply with a field manager of its own, for the observed version.
//     ReferencesResolved, or an event, reports the progress; masthead_references_kinds what no object can report.
//   - An object that waits is retried when its source, grant or definition appears: each is watched by name, metadata
//     only, 256 in a cluster and 64 for one namespace. Resolved objects cost nothing.
//   - Objects without references are not cached; of settled ones the name is kept. Cycles get a condition, and are not
//     written.
//   - Secret data is written only to marked fields, also through several objects (declared.marked).
//   - In the hub, objects whose references others wrote are left alone (hasReferencesOfAnother).
//
// Within a workload cluster a user gains no more than references.Tenancy permits, although Masthead can read every
// Secret there.
package references
