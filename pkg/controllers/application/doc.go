// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application reconciles the Applications of the workload clusters according to the KEP "Kubernetes Application
// API": an Application owns its components, so that they are deleted with it, and its status shows which of them are
// installed and healthy. It needs no agent in a workload cluster, only a CustomResourceDefinition and RBAC rights.
//
// # What it guarantees
//
//   - A component is an object of a kind that the Application names, in its namespace, with labels that match its
//     selector and with the annotation kubernetes.io/application naming it. Each component gets an owner reference to
//     the Application, whether it was created before or after the Application, and even if the spec does not name it.
//     An object with a controller gets none: it is deleted with its controller. An object that is not a component, or
//     no longer one, loses the reference and keeps all others.
//   - An owner reference is written only while the watch shows the Application and the API server confirmed, at most a
//     second ago, that it exists with the same UID and is not being deleted; and only to the observed version of the
//     object. While an Application is being orphaned, its remaining objects are released. A recreated Application owns
//     nothing of its predecessor. Objects being deleted are left alone. Deletion is left to the garbage collector:
//     Masthead deletes only the Pods it created for health checks.
//   - A component that cannot be observed is Unknown, with the reason, and neither missing nor healthy: its kind is not
//     served, may not be listed, could not be read for five minutes, has too many objects, or has no namespace. Only
//     components of that kind are affected. A kind served later is picked up: definitions and API services are watched
//     while an Application names a kind.
//   - Each kind named by Applications has one watch per cluster, however many Applications there are. It is kept for
//     one minute after the last Application stops naming the kind. It keeps a small record of each object that has the
//     annotation or is owned by an Application, and nothing of others; health is assessed on arrival. Applications are
//     kept compressed. Memory grows with components, by less than two KiB each including its share of an Application
//     (docs/benchmarks.md), and requests grow with kinds.
//   - The first change to a component is handled at once, the next no sooner than 200 ms later. An unchanged status is
//     not written; an idle cluster receives no requests, and a restart rewrites nothing. During the first list of a
//     kind, its components keep their previous status, for up to two minutes; all others are shown as observed. A
//     status that does not list a component yet waits for it, for up to five seconds. A status that lists only some of
//     what it counts is kept whole for that long.
//   - Dependents are requeued when a dependency is created, deleted or changes health.
//   - Discovered objects are counted and shown, and not changed. They are found by the marks of Helm, Flux and Argo CD,
//     by labels, or by name. Nothing is kept of objects without a wanted mark. A new mark in a kind that was already
//     listed triggers a relist, at most every ten seconds; until then nothing is reported missing. A readable Flux
//     inventory takes precedence over labels.
//   - If the class sets ObserveOnly, components are not written and no Pods are created, and no such rights are needed.
//     Existing ownership stays. A running reconcile starts no further write once the class sets ObserveOnly or
//     withdraws a consent.
//   - The status keeps the last ten changes of health. They are also reported by Events: at most five in ten minutes
//     per Application, and one a second per cluster. Events that cannot be written are lost.
//   - When a cluster is un-enrolled, or its class disables Applications, each Application's status is set to
//     unobserved, so that none still claims to be healthy. Owner references stay. A cluster that is disconnected then
//     is not updated.
//   - A hanging cluster does not delay others: each request has a deadline, and each cluster a fair turn and share of
//     the workers.
//
// # Decisions
//
//   - Two versions of a kind are two kinds. Each is watched in the version named, and one Application may name both:
//     Masthead does not decide which version determines health. Objects are counted and owned once.
//   - A kind removed from a spec is watched until none of its objects is owned any more, even if it cannot be observed
//     for a while. The status lists the kinds of owned objects before the first reference of a kind is written, so that
//     a manager that starts later knows them.
//   - The reference sets neither controller nor blockOwnerDeletion: the KEP asks for neither, an object has only one
//     controller, and blocking needs a right to the Application's finalizers. A reference that marks the Application as
//     controller was not written by Masthead, and is left alone.
//   - An Application can be a component of another one, never of itself.
//   - A missing patch right is retried after about a minute, by one request per kind and namespace. What the API server
//     says about one namespace's objects is not shown in other namespaces.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing beyond what they already have. All reads and writes caused by a cluster's content stay in that cluster, in
// the namespace of the Application. The hub receives a bounded summary. Beyond that:
//
//   - Masthead patches owner references of any object of a kind it may patch, on behalf of the Application's author.
//     This can delete objects that bear an annotation, which anyone able to write them could delete or change as well;
//     an Application cannot reach objects that do not name it, unless the hub's operator consents in the class
//     (discoveredOwnership). The right to write Applications together with the right to annotate objects therefore
//     amounts to the right to delete these, as docs/application.md says.
//   - An Application's author may want to learn what exists in namespaces they may not read. Objects of other
//     namespaces, and cluster-scoped ones, are seen only where the class lists them for the Application's namespace
//     (record/sight.go). Anything else is not looked up: NotAllowed follows from the spec and the class alone, and is
//     the same whether or not something exists (TestAnAuthorLearnsNothingOfOtherNamespaces). The same holds for an
//     inventory in the author's own namespace (TestAnAuthorLearnsNothingThroughAnInventoryOfTheirOwn): the number of
//     entries not allowed is not reported. In their own namespace, authors learn names, kinds and health of objects
//     with the marks they ask for, even of kinds that they may not read; docs/application.md says so.
//   - Discovery is bounded: 32 sources, 16 namespaces and 64 kinds in a spec, by validation; 512 objects per
//     Application and 512 entries per inventory; 16384 marks and 500 kinds per cluster. The records count towards the
//     budget of the watches.
//   - Health checks are Pods that Masthead creates; see the comment in healthcheck/ensure.go. The right for that is
//     optional. Pods are found by label and owner in each reconcile, and not remembered.
//   - Names of kinds become request paths to the same cluster only, and only for kinds that it serves.
//   - Texts of their API server are repeated bounded, and without control characters.
//   - They only load themselves: the queue is fair across clusters; an Application is reconciled at most five times a
//     second; a reconcile writes at most 200 references; a cluster has at most 500 kinds; records stay within the
//     budget of the watches.
package application
