// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindwatch watches a changing set of kinds in one cluster at a bounded cost.
//
// A controller-runtime cache keeps what it was once asked for until the process ends, holds every object whole, needs a
// RESTMapper, and fails or blocks when a kind is not served. A Watcher is for kinds that come and go while it runs. It
// guarantees:
//
//   - One reflector per kind, however many owners ask for it. Set replaces what one owner asks for; a kind that nobody
//     asks for any more is stopped, its objects are dropped, and no goroutine of it stays. Nothing blocks: a kind that is
//     not served, or that may not be listed, is parked and tried again with jittered back-off, and at once when Poke says
//     that something about it changed. Other kinds do not notice.
//   - Objects are kept without managedFields (but for one manager's, if Options.KeepManager names it) and without kubectl's last-applied-configuration, which together are often
//     most of an object; a Kind can be watched for its metadata only, and be narrowed by selectors on the server's side.
//   - Events of one kind arrive one after another, after the store was changed: a handler that reads the Watcher sees at
//     least what its event says. An object of which the list says that it was replaced by another of the same name (other
//     UID) is reported as deleted and added.
//   - Each kind, and all kinds together, have a budget of objects and bytes (Options.PerKind and Total). It is enforced while
//     a list arrives, in pages or as a stream, and afterwards. A kind that is over it is TooLarge: its objects are dropped,
//     Get and List answer ErrNotSynced, and it is tried again with back-off. Other kinds do not notice.
//   - An object is of the kind that was asked for, and has a name and a namespace that can stand in a path, whatever the
//     server sends; an item without is dropped. A Kind of which that is not true (Validate) is never asked for.
//   - Observe puts an object that the caller has just written in front of the store until the watch has caught up, so
//     that the next decision is not made on an object that is known to be old.
//
// # What a missing kind means
//
// "The kind is not served" is not "all objects are deleted". An API server that drops a CRD deletes its objects first and
// reports each of them; these deletions are reported as such. A kind that merely stops being served (a version is
// switched off, the CRD's storage is torn down before the last events were delivered, rights are taken away) leads to
// state NotServed or Forbidden: nothing is reported as deleted, and Get and List answer ErrNotSynced, never NotFound and
// never an empty list. When the kind is served again, the difference between what was known and what is there is reported,
// deletions included. A caller that must know whether objects are gone for good asks for the CRD.
//
// A broken connection does not change the state of a kind that was synced: its last known objects are served, like every
// informer does. Whoever must not act on an old view reads live before it acts.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. A Watcher reads one cluster with the client that it was given, and keeps what it read apart from every other
// Watcher. What a cluster that serves many or large objects costs in memory is bounded by the budget of its Watcher and, for
// what is under way, by that of the transport.
package kindwatch
