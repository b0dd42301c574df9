// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindwatch watches a changing set of kinds in one cluster at a bounded cost. It is the heart of the program:
// whatever Masthead knows of the clusters that it serves, it knows through a Watcher.
//
// A controller-runtime cache keeps what it was once asked for until the process ends, holds every object whole, needs a
// RESTMapper, and fails or blocks when a kind is not served. A Watcher is for kinds that come and go while it runs. It
// guarantees:
//
//   - One reflector per kind, however many owners ask for it. Set replaces what one owner asks for, at a cost that
//     depends on that owner alone; what is watched is always what follows from what all owners ask for. A kind that
//     nobody asks for any more is stopped, after Options.Linger: its objects are dropped, and no goroutine of it stays.
//     Nothing blocks: a kind that is not served, or that may not be listed, is parked and tried again with jittered
//     back-off, and at once when Retry says that something about it changed. Other kinds do not notice.
//   - Objects are kept without managedFields (but for one manager's, if Options.KeepManager names it) and without
//     kubectl's last-applied-configuration, which together are often most of an object; a Kind can be watched for its
//     metadata only, and be narrowed by selectors on the server's side.
//   - With Options.Reduce, no object is kept at all, but a Record of those that matter; see below.
//   - Events of one kind arrive one after another, after the store was changed: a handler that reads the Watcher sees
//     at least what its event says. An object of which the list says that it was replaced by another of the same name
//     (other UID) is reported as deleted and added.
//   - Each kind, and all kinds together, have a budget of objects and bytes (Options.PerKind and Total). It is enforced
//     while a list arrives, in pages or as a stream, and afterwards. A kind that is over it is TooLarge: its objects
//     are dropped, Get and List answer ErrNotSynced, and it is tried again with back-off. Other kinds do not notice.
//   - All Watchers together list no more kinds at once than a ListGate lets them, and none keeps the others from
//     listing.
//   - An object is of the kind that was asked for, and has a name and a namespace that can stand in a path, whatever
//     the server sends; an item without is dropped. A Kind of which that is not true (Validate) is never asked for.
//   - Observe puts an object that the caller has just written in front of the store until the watch has caught up, so
//     that the next decision is not made on an object that is known to be old.
//
// # Records
//
// A Watcher with Reduce is for whoever needs little of few objects among many. Reduce is called for each object as soon
// as it is decoded: what the stream of a list, or a page of it, brings is never there whole. Of an object that Reduce
// refuses nothing is kept, once the list is complete; until then it is its key, and Options.Listed bounds how many
// there are. So memory grows with the records (about 500 bytes and what the Record itself takes), and not with the
// cluster.
//
// Only what Records show is reported: an object that changes into one with an equal Record is not, though its resource
// version is known, and one that Reduce does not keep any more is reported as Deleted, with its last Entry. That
// includes what happened while nobody was looking: a list that comes after a gap is compared with what was known, and
// what is missing from it is reported. Lookup finds Entries by the keys of their Records.
//
// Records do not pay for what is not kept, but the cluster's API server and the network do: it sends every object of a
// kind, unless the Kind has selectors, and each is decoded once. A Kind with MetadataOnly is several times cheaper in
// that.
//
// When Reduce itself would decide otherwise than before, Relist has it look at everything again, and Generations says
// when it has.
//
// # Which kinds there are
//
// A Resolver says what a cluster calls a kind, from the discovery document of its group and version, without reading
// all the others and without a RESTMapper, which fails as a whole. It asks once, for however many callers, and believes
// the answer until Forget or ForgetAll; that something is missing it believes for a while. What it keeps is bounded,
// too. NewMapper makes a RESTMapper of one, for clients that need one.
//
// # What several Watchers share
//
// A Watcher belongs to one controller: what it keeps of an object, and how much, is that controller's affair. A Kind
// with Shared is one that several controllers of a cluster need in the same form. Watchers with the same Options.Shared
// have it watched once, and keep its objects once, within a budget that is nobody's own. Each is told of everything as
// if the watch was its own, but: what a Watcher is told when it comes later is what there is by then, and it may be
// told of a change that it has seen already; Get can know what it has not been told yet; a handler of one delays those
// of the others; and what one does by Observe, Retry and Relist is done for all, so that an event can be marked
// SelfInduced for what another one wrote.
//
// # What a watch costs
//
// A watch on which nothing happens has four goroutines and takes about 40 KiB, most of it their stacks and what the
// HTTP/2 stream and its decoder need; a tenth is ours (BenchmarkIdleWatch). The API server ends it after five to ten
// minutes, so it costs a request in that time. A parked kind has one goroutine.
//
// # What is not synced
//
// State says how far one kind is. Progress says, for everything that is watched in a cluster, which kinds are not
// synced or do not stay so, for how long, and with which Cause: a list that does not come to its end and a watch that
// ends right after each list have no State of their own, and whoever waits for such a kind waits in silence. Causes are
// a fixed set and kinds are names that the API allows, so that they can stand in a condition (KindsSynced of the
// ClusterProfile). NotServed and Forbidden are not among them: who needs the kind tells of these.
//
// How fast events arrive is not bounded here but where the answers of a cluster are read, for all watches of a
// connection together (pkg/providers/connection/transport): what is not read waits in the API server, and the Watcher
// sees a slow watch, not a gap.
//
// # What a missing kind means
//
// "The kind is not served" is not "all objects are deleted". An API server that drops a CRD deletes its objects first
// and reports each of them; these deletions are reported as such. A kind that merely stops being served (a version is
// switched off, the CRD's storage is torn down before the last events were delivered, rights are taken away) leads to
// state NotServed or Forbidden: nothing is reported as deleted, and Get and List answer ErrNotSynced, never NotFound
// and never an empty list. When the kind is served again, the difference between what was known and what is there is
// reported, deletions included. A caller that must know whether objects are gone for good asks for the CRD.
//
// A connection that breaks for a moment does not change the state of a kind that was synced: its last known objects are
// served, like every informer does. Whoever must not act on an old view reads live before it acts. A kind that for
// Options.StaleAfter (five minutes by default) could be neither listed nor watched, because every request fails or
// hangs, is StateStale: what was known last is served still, and whoever tells people how objects fare says that nobody
// knows. It is StateSynced again with the next list or watch.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. A Watcher reads one cluster with the client that it was given, and keeps what it read apart from the
// Watchers of every other cluster; a Shared is of one connection to one cluster. What a cluster that serves many or
// large objects costs in memory is bounded by the limits of its Watchers and its Shared. What they keep, and what is
// arriving, is also charged to the cluster's account of the process's budget (Options.Account): when that is full, the
// cluster that holds most has kinds dropped and parked as TooLarge. An object with which a handler or Reduce panics
// costs its cluster the connection (Options.Guard). A cluster that does not answer, or has very many kinds, has no more
// than half of the places at a ListGate, and none for longer than ten seconds a list.
package kindwatch
