// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package appstatus computes the status of an Application from what was observed. It neither looks nor writes; the time
// is an argument.
//
// # What it guarantees
//
//   - The same observation gives the same status, and a status that is written and observed again gives itself, so that
//     nothing is written at rest (TestStatusIsIdempotent).
//   - What could not be seen is Unknown, with the reason, and is neither missing nor healthy.
//   - What is not known yet can be held: it is shown as the status has it.
//   - A status is bounded, however many components there are and whatever they say (TestStatusIsBounded).
//   - kstatus, Argo CD and Flux read it as it is meant (TestVerdictsOnApplications).
//
// # Where to change what
//
//   - what is observed: observation.go;
//   - what is said of each component, and the counts: components.go; of dependencies: dependencies.go;
//   - whether the Application is ready: ready.go; the conditions: conditions.go;
//   - what is held: hold.go; what the history keeps and which Events are told: history.go.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. A status is written to the cluster that was observed. The hub gets a Summary of it, which is bounded.
package appstatus
