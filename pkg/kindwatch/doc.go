// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindwatch watches a changing set of kinds in one cluster at a bounded cost. All of Masthead's knowledge about
// workload clusters comes from Watchers.
//
// A controller-runtime cache never stops an informer by itself, stores whole objects, needs a RESTMapper, and fails or
// blocks when a kind is not served. A Watcher supports kinds that are added and removed at run time. It guarantees:
//
//   - One reflector per kind, however many owners request it. Set replaces the kinds of one owner, at a cost that
//     depends on that owner alone; the Watcher watches the union of all owners' kinds. A kind without owners is stopped
//     after Options.Linger: its objects are dropped and its goroutines end. Nothing blocks: a kind that is not served,
//     or that may not be listed, is parked and retried with jittered back-off, and at once on Retry. Other kinds are
//     not affected.
//   - Objects are kept without managedFields (except those of Options.KeepManager) and without kubectl's
//     last-applied-configuration, which are often most of an object. A Kind can be metadata-only, and be restricted by
//     server-side selectors.
//   - Options.Keep can store less of an object, and Watcher.KeepAgain decides that again.
//   - With Options.Reduce, Records of selected objects are kept instead of objects; see below.
//   - Events of one kind are delivered serially, after the store has changed: a handler that reads the Watcher sees at
//     least the state in its event. If a list shows that an object was replaced by another of the same name (different
//     UID), it is reported as deleted and added.
//   - Each kind, and all kinds together, have a budget of objects and bytes (Options.PerKind and Total). It is enforced
//     while a list arrives, in pages or as a stream, and afterwards. A kind over budget is TooLarge: its objects are
//     dropped, Get and List return ErrNotSynced, and it is retried with back-off. Other kinds are not affected.
//   - A ListGate limits how many kinds all Watchers list at once; no cluster can starve the others.
//   - Every object has the requested kind, and a name and namespace that are valid path segments, whatever the server
//     sends; other items are dropped. A Kind that fails Validate is never requested.
//   - Observe makes reads return an object that the caller has just written until the watch has caught up, so that the
//     next decision is not based on a stale object.
//
// # Records
//
// Use Reduce to keep small projections of selected objects. Reduce is called for each object as soon as it is decoded,
// so that a list is never in memory whole. For an object that Reduce rejects, only the key is kept, until the list is
// complete; Options.Listed bounds their number. So memory grows with the records (about 500 bytes each plus the Record
// itself), not with the cluster.
//
// Only changes of Records are reported: an update that yields an equal Record is not reported, though its resource
// version is stored, and an object that Reduce no longer keeps is reported as Deleted, with its last Entry. That covers
// changes during gaps: a list after a gap is compared with the cache, and missing objects are reported. Lookup finds
// Entries by the index keys of their Records.
//
// Objects that are not kept use no memory here, but still load the API server and the network: every object of a kind
// is sent, unless the Kind has selectors, and is decoded once. A Kind with MetadataOnly makes that several times
// cheaper.
//
// When the decisions of Reduce change, call Relist to apply it to all objects again; Generations reports when that is
// done.
//
// # Which kinds there are
//
// A Resolver maps a kind to its resource, from the discovery document of its group and version only, and without a
// RESTMapper, which fails as a whole. It sends one request for all concurrent callers and caches the result until
// Forget or ForgetAll; negative results expire. Its cache is bounded. NewMapper wraps one in a RESTMapper, for clients
// that need one.
//
// # What several Watchers share
//
// A Watcher belongs to one controller, which decides what to keep of each object. A Kind with Shared is one that
// several controllers of a cluster need in the same form. Watchers with the same Options.Shared share one watch and one
// copy of its objects, within a separate budget. Each receives events as if the watch were its own, with these
// exceptions: a Watcher that joins later receives the current state, and may receive a change that it has already seen;
// Get may be ahead of the events; a handler of one delays those of the others; and Observe, Retry and Relist of one
// affect all, so that an event can be marked SelfInduced for another's write.
//
// # What a watch costs
//
// An idle watch has four goroutines and takes about 40 KiB, most of it stacks, the HTTP/2 stream and its decoder; a
// tenth is this package's (BenchmarkIdleWatch). The API server ends it after five to ten minutes, so it costs a request
// in that time. A parked kind has one goroutine.
//
// # What is not synced
//
// State is the state of one kind. Progress reports, for all watches of a cluster, which kinds are not synced or do not
// stay synced, for how long, and with which Cause: a list that never completes and a watch that ends right after each
// list have no State of their own, and would otherwise go unreported. Causes are a fixed set and kinds are valid API
// names, so that both can be used in a condition (KindsSynced of the ClusterProfile). NotServed and Forbidden are not
// included: the controller that needs the kind reports these.
//
// The rate of events is limited by the transport, for all watches of a connection together
// (pkg/providers/connection/transport): unread events wait in the API server, and the Watcher sees a slow watch, not a
// gap.
//
// # What a missing kind means
//
// "The kind is not served" is not "all objects are deleted". When a CRD is deleted, the API server first deletes its
// objects and sends an event for each; these are reported as deletions. A kind that merely stops being served (a
// version is disabled, the CRD's storage is torn down before the last events were delivered, permissions are revoked)
// becomes NotServed or Forbidden: nothing is reported as deleted, and Get and List return ErrNotSynced, never NotFound
// and never an empty list. When the kind is served again, the difference between the cache and the list is reported,
// deletions included. A caller that must know whether objects are gone for good reads the CRD.
//
// A short loss of connection does not change the state of a synced kind: its last known objects are served, as with any
// informer. Callers that must not act on stale data read live first. A kind that could be neither listed nor watched
// for Options.StaleAfter (five minutes by default), because every request fails or hangs, is StateStale: its last known
// objects are still served, and callers report the health of its objects as unknown. It is StateSynced again with the
// next list or watch.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. A Watcher reads one cluster with the client that it was given, and shares no data with the Watchers of other
// clusters; a Shared belongs to one connection to one cluster. The memory for a cluster that serves many or large
// objects is bounded by the limits of its Watchers and its Shared. Stored and arriving objects are also charged to the
// cluster's account of the process's budget (Options.Account): when that is full, kinds of the cluster that holds most
// are dropped and parked as TooLarge. An object that makes a handler or Reduce panic costs its cluster the connection
// (Options.Guard). A cluster that does not answer, or has very many kinds, gets at most half of the slots of a
// ListGate, and holds none for longer than a second a list.
package kindwatch
