// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery mirrors what the hub offers into workload clusters: read-only copies of its
// CompositeResourceDefinitions and Compositions (and of InfrastructureDefinitions and InfrastructurePublications, where
// a hub still serves these), with their definitions, so that `kubectl get compositions` answers as it does in the hub.
// It also makes each workload cluster reject changes to what Masthead put there.
//
// # What it guarantees
//
//   - A cluster whose class has a ReadWrite agent has copies of the hub's objects for the API groups that the class
//     offers, except those that a label withholds, limited by spec.agent.discovery. Copies follow changes in the hub
//     and are deleted when the original is deleted or no longer offered. Changes and deletions made in the cluster are
//     reverted.
//   - A copy has the name, the spec, the status and the users' labels of its original, and nothing else of the hub: no
//     annotations, owners, finalizers or managed fields, and no conversion settings, which name a Service of the hub.
//   - Nothing flows from a workload cluster to the hub: this package writes nothing to the hub except events.
//   - An object without the label masthead.dev/managed-by, or that names another hub, is never overwritten or deleted.
//     A definition that is no longer needed stays while it has objects that are not copies.
//   - A cluster has its own Crossplane if it has CompositeResourceDefinitions that are not copies, or copies with a
//     foreign finalizer. Nothing is copied there until these are gone. An object with such a finalizer is never
//     deleted: that Crossplane would delete its claims.
//   - A ValidatingAdmissionPolicy in each cluster allows only Masthead to create, change or delete objects with the
//     label: copies, their definitions, the definitions of claim kinds that the agent pulls, and that of Applications.
//     It names Masthead's username as the cluster reports it, and follows when that changes. Where no policy is
//     possible, this is reported, and drift is still reverted.
//   - No decision is made about a kind until its state in the hub is known. An unreachable hub or a missing class
//     removes nothing.
//   - Nothing is rewritten that is already there, also after a restart: each copy's annotation holds a hash of its
//     content and its generation, and the metadata watch shows both. An idle fleet costs no requests, a restart one per
//     cluster: for Masthead's username.
//   - The hub's objects are held once, regardless of the number of clusters. Of workload clusters only metadata is
//     held, within the budget of their watches.
//   - An object that a cluster refuses does not block others. It is reported once, in the condition KindsServed of the
//     ClusterProfile, a metric, and an event on the enrolled object.
//
// # Decisions
//
//   - The definitions of copies have no status subresource: nobody in a workload cluster reports a status, and a copy
//     is written in one request. The status keeps its place in the schema and its columns.
//   - Copies are written by full updates with the observed resource version instead of server-side apply: fields that
//     somebody added must be removed, and an apply leaves what it does not mention.
//   - A class whose agent is Disabled, or that offers less than before, removes what is not wanted: copies,
//     definitions, and the policy, unless the definition of Applications needs it. So does un-enrolling, while the
//     cluster is still connected and for half a minute at most, again if its API server fails: nothing would update the
//     copies any more, and the policy would lock the cluster's users out. A cluster that was not connected then keeps
//     both; the policy's binding can be deleted there as usual.
//   - The policy allows adding the label to an object, which is how a definition is handed over to Masthead.
//   - An object recreated in the hub while Masthead was not watching can differ in immutable fields. Its copy is then
//     deleted and recreated.
//   - Between the check that a definition has only copies and its deletion, somebody can create another object, which
//     is then deleted with it. Kubernetes has no precondition for that.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// What they are meant to see: the definitions and Compositions of the API groups that the class offers, complete except
// for conversion settings. Compositions can contain anything that their authors wrote, including the names of Secrets
// and accounts, though not their content; a class can keep them in the hub. Beyond that:
//
//   - Nothing that the cluster reports selects what is copied. The names and content of all writes come from the hub
//     and the class.
//   - The username that the cluster reports for Masthead is written, quoted, into that cluster's own policy if it is
//     printable; a lie leaves their own cluster unprotected. So does a forged annotation on a changed copy.
//   - Forging the label makes an object in their own cluster look like a copy, and gets it deleted there.
//   - Messages of their API server are repeated truncated and without control characters.
//   - Load that they cause by repeatedly undoing writes is confined: the queue is fair across clusters, a pass writes
//     200 objects at most, and each request has a deadline.
package discovery
