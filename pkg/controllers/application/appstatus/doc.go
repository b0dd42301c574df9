// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package appstatus computes the status of an Application from an observation. It does no I/O; the time is an argument.
//
// # What it guarantees
//
//   - The same observation gives the same status, and a written status that is observed again gives itself, so that
//     nothing is written while nothing changes (TestStatusIsIdempotent).
//   - A component that cannot be observed is Unknown, with the reason, and neither missing nor healthy.
//   - A component that is not observed yet can be held: its previous status is shown.
//   - A status is bounded, regardless of the number and messages of the components (TestStatusIsBounded).
//   - kstatus, Argo CD and Flux interpret it as intended (TestVerdictsOnApplications).
//
// # Where to change what
//
//   - the observation: observation.go;
//   - the entries of components, and the counts: components.go; of dependencies: dependencies.go;
//   - the condition Ready: ready.go; other conditions: conditions.go;
//   - held entries: hold.go; the history and the choice of Events: history.go.
package appstatus
