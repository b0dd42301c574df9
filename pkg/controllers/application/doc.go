// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application looks after the Applications of the workload clusters, as the KEP "Kubernetes Application API"
// says: an Application owns its components, so that they are deleted with it, and its status says which of them are
// installed and how they fare. Nothing runs in a workload cluster for it; there is a definition, and Masthead's rights.
//
// # What it guarantees
//
//   - A component is an object of a kind that the Application names, in its namespace, with labels that its selector
//     matches and with the annotation kubernetes.io/application that names it. Each gets an owner reference to the
//     Application: whether it was there before the Application or comes later, and also if the spec does not name it.
//     One that has a controller gets none: it goes with its controller. Whatever is not, or is not any more, a
//     component loses the reference, and keeps all others.
//   - An owner reference is written only while the watch shows the Application and the API server itself said, at most
//     a second ago, that it is still there, is the same one and is not being deleted; and only to the object in the
//     version in which it was seen. While an Application is being orphaned, what it still owns is released. An
//     Application of the same name that is made anew owns nothing of what the old one did. What is being deleted is
//     left alone. Deleting is the garbage collector's: Masthead deletes nothing but Pods of health checks that it made.
//   - What cannot be seen is Unknown, with the reason, and is neither missing nor healthy: a kind that is not served,
//     that may not be listed, that could not be read for five minutes, of which there is too much, that has no
//     namespace. It concerns the components of that kind and nothing else. When a kind is served later, it is seen:
//     definitions and API services are watched while an Application names a kind.
//   - Of each kind that Applications of a cluster name there is one watch, however many Applications there are, and one
//     minute longer than any does. It keeps a small record of each object that has the annotation or is owned by an
//     Application, and nothing of any other; how an object fares is decided while it arrives. Applications are kept
//     compressed. So memory grows with components, by less than two KiB for each with its share of an Application
//     (docs/benchmarks.md), and requests with kinds.
//   - What happens to a component is acted upon at once, and then again no sooner than 200 ms later. A status that has
//     not changed is not written; an idle cluster is asked for nothing, and after a restart nothing is written that is
//     there already. While a kind is being read for the first time, its components stay as the status has them, for up
//     to two minutes, and all others are shown as they are. A status that says nothing of a component yet waits for it,
//     for up to five seconds.
//     A status that lists only a part of what it counts stays whole for that long.
//   - When an Application comes, goes or fares otherwise, those that depend on it are looked at.
//   - What an Application discovers is counted and shown, and not changed: it is found by what Helm, Flux and Argo CD
//     write, by labels, or by name. Of an object that bears no mark that an Application looks for nothing is kept. When
//     one looks for a new mark in a kind that was read before, the kind is read again, at most every ten seconds, and
//     until then nothing is said to be missing. An inventory of Flux decides, where it can be read, over the labels of
//     objects.
//   - Where the class says ObserveOnly, nothing is written to components and no Pod is made: no right to that is
//     needed. What is owned from before stays so. A look that is under way begins no write any more once the class says
//     so, or takes a consent back.
//   - A change of health is kept in the status, ten of them, and told by an Event: at most five in ten minutes of an
//     Application, and one a second of a cluster. An Event that cannot be written is lost.
//   - When a cluster is un-enrolled, or its class disables Applications, each Application is told that nobody looks any
//     more, so that nothing goes on saying that it is healthy. Owner references stay. A cluster that is not connected
//     then is not told.
//   - A cluster that hangs delays no other: each request has a deadline, each cluster its turn and a part of the
//     workers.
//
// # Decisions
//
//   - Two versions of one kind are two kinds. Each is watched as the Application that names it says, and both may be by
//     one: which version says how an object fares is not for Masthead to decide. Objects are counted and owned once.
//   - A kind that was taken out of a spec is watched until nothing of it is owned any more, also if it cannot be seen
//     for a while. The status lists the kinds of which objects are owned, from before the first reference of a kind is
//     written, so that a manager that starts later knows them.
//   - The reference is neither a controller's nor does it block: the KEP asks for neither, an object has one controller
//     only, and to block needs a right over the Application's finalizers. A reference that says that the Application is
//     the controller was not written by Masthead, and is left alone.
//   - An Application can be a component of another one. It is never its own.
//   - A right to patch that is missing is asked for again after a minute or so, by one request for the kind and
//     namespace. What the API server says about one namespace's objects is told to nobody else.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing that they do not have. Whatever is read or written in a cluster because of what is there, is read or written
// in that cluster, in the namespace of the Application. To the hub goes a bounded summary. Beyond that:
//
//   - Masthead patches owner references of any object of a kind that it has the right to patch, on behalf of whoever
//     writes an Application. What that brings about is the deletion of objects that bear an annotation, which whoever
//     can write them can delete or change as well; an Application cannot reach what does not name it, unless the
//     operator of the hub consents in the class (discoveredOwnership). The right to write Applications together with
//     the right to annotate objects is hence as good as the right to delete these, and docs/application.md says so.
//   - Whoever writes an Application wants to know what there is in namespaces that they may not read. Objects of other
//     namespaces, and those without one, are seen only where the class lists them for the namespace of the Application
//     (record/sight.go). What is not listed is not looked at: the answer NotAllowed follows from the spec and the class
//     alone, is the same whether there is something or not, and does not change when that does
//     (TestAnAuthorLearnsNothingOfOtherNamespaces). So it is with what an inventory in the author's own namespace names
//     (TestAnAuthorLearnsNothingThroughAnInventoryOfTheirOwn): how many of its entries are not allowed is not said. In
//     their own namespace, authors learn names, kinds and health of the objects that bear the marks that they ask for,
//     also of kinds that they may not read; docs/application.md says so.
//   - Discovery is bounded: 32 sources, 16 namespaces and 64 kinds in a spec, by validation; 512 objects of an
//     Application and 512 entries of an inventory; 16384 marks and 500 kinds of a cluster. The records count in the
//     budget of the watches.
//   - Health checks are Pods that Masthead makes; see the comment in healthcheck/ensure.go. The right for that is not
//     among those that it needs. Which Pods there are is found out by their label and their owner at each look, and
//     not remembered.
//   - Names of kinds become paths of requests to that same cluster, once they are those of a kind that it serves.
//   - Texts of their API server are repeated bounded, and without control characters.
//   - Work that they make is theirs: the queue gives each cluster its turn; an Application is looked at five times a
//     second at most; a look writes 200 references at most; a cluster has 500 kinds at most; what is kept is within the
//     budget of the watches.
package application
