// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery shows the users of workload clusters what the hub offers: read-only copies of its
// CompositeResourceDefinitions and Compositions (and of InfrastructureDefinitions and InfrastructurePublications, where
// a hub still serves these), with their definitions, so that `kubectl get compositions` answers there as it does in the
// hub. And it has each workload cluster reject changes of what Masthead put there.
//
// # What it guarantees
//
//   - A cluster whose class has a ReadWrite agent shows the objects that the hub has and that are about an API group
//     that the class offers, as far as spec.agent.discovery says. What changes in the hub follows; what goes there, or
//     is not offered any more, goes. What somebody changes or deletes in the cluster is put back.
//   - A copy has the name, the spec, the status and the users' labels of its original, and says nothing else of the
//     hub: no annotations, owners, finalizers or managed fields, and not how versions are converted, which names a
//     Service of the hub.
//   - Nothing ever flows from a workload cluster to the hub: there is no write to the hub in this package but for
//     events.
//   - What does not bear the label masthead.dev/managed-by, or names another hub, is never overwritten or deleted. A
//     definition that is not needed any more stays while there are objects of it that are not copies.
//   - A cluster with CompositeResourceDefinitions that are not copies, or with copies of them that bear somebody else's
//     finalizer, has a Crossplane of its own. Nothing is copied there, until these go. What bears such a finalizer is
//     never deleted: that Crossplane would delete its claims.
//   - A ValidatingAdmissionPolicy in each cluster rejects that anybody but Masthead creates, changes or deletes what
//     bears the label: copies, their definitions, the definitions of claim kinds that the agent pulls, and that of
//     Applications. It names the user that the cluster says Masthead is. When that user changes, the policy follows.
//     Where there can be no policy, that is told, and drift is put back all the same.
//   - Nothing is decided about a kind while it is not known what the hub has of it. A hub that cannot be asked takes
//     nothing away, nor does a class that is missing.
//   - Nothing is written that is there already, also after a restart: each copy's annotation holds a hash of its
//     content and the generation that it had, and the watch of its metadata shows both. An idle fleet costs no
//     requests, a restart one for each cluster: as whom it knows Masthead.
//   - The hub's objects are held once, whatever the number of clusters. Of a workload cluster only metadata is held,
//     within the budget of its watches.
//   - One object that a cluster refuses hinders no other. It is told as the condition KindsServed of the
//     ClusterProfile, a metric, and an event on the enrolled object, once.
//
// # Decisions
//
//   - The definitions of copies have no status subresource: nobody in a workload cluster reports a status, and a copy
//     is written as a whole, once. The status keeps its place in the schema and its columns.
//   - Copies are written by whole updates with the resource version that was seen, rather than by server-side apply:
//     what somebody added has to go, and an apply leaves what it does not mention.
//   - A class whose agent is Disabled, or that is changed to show less, takes back what is not wanted: copies,
//     definitions, the policy, unless it is there for the definition of Applications. So does un-enrolling, while the
//     cluster is still connected and for half a minute at most, again if its API server fails: nobody would keep the
//     copies true, and the policy would lock the cluster's users out. A cluster that was not connected then keeps both;
//     the binding of the policy can be deleted there like anything else.
//   - The policy does not reject adding the label to something, which is how a definition is handed over to Masthead.
//   - An object that was made anew in the hub while nobody looked can differ in fields that cannot be changed. Its copy
//     is then deleted and made anew.
//   - Between the look whether a definition has objects that are not copies and its deletion, somebody can create one,
//     which then goes with it. Kubernetes has no precondition for that.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// What they are meant to see: the definitions and Compositions of the API groups that the class offers, whole but for
// how versions are converted. Compositions can contain anything that their authors wrote into them, also the names of
// Secrets and accounts, though not their content; a class can keep them in the hub. Beyond that:
//
//   - Nothing that the cluster says selects what is copied. The names and the content of everything that is written
//     come from the hub and from the class.
//   - The user name that the cluster says Masthead has is written into that cluster's own policy, quoted, if it is one
//     that can be printed; a lie leaves their own cluster unprotected. So does a forged annotation with a copy that was
//     changed.
//   - Forging the label makes an object in their own cluster look like a copy, and has it deleted there.
//   - Texts of their API server are repeated bounded, and without control characters.
//   - Work that they make, by undoing what is written again and again, is theirs: the queue gives each cluster its
//     turn, a pass writes 200 objects at most, and each request has a deadline.
package discovery
