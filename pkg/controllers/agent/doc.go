// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent carries claims from workload clusters to the hub, where Crossplane provisions what they ask for, and
// brings their status and their connection Secrets back.
//
// Two controllers do it. "agent-definitions" keeps, in each workload cluster, the CustomResourceDefinitions of the claim
// kinds that the hub publishes, and thereby decides which kinds are synchronised where. "agent" works on one claim at a
// time, whatever its kind. Claims, on both sides, are watched by pkg/kindwatch.
//
// What is said here of claims is true of all that the hub publishes: the claims of an XRD v1, the namespaced composite
// resources of an XRD v2, and the requirements of an InfrastructurePublication. Where they differ, form says so.
//
// # What it guarantees
//
//   - A claim has at most one object in the hub. Creation in the hub is the arbiter: the object is created by a
//     server-side apply that the API server refuses if one exists, whatever our watch knew. An object that names another
//     source, or none, is never written; the claim says who holds the name, and is tried again when it is free.
//   - A claim records its object in the hub, on itself (record.go). Other objects that name its source harm it as little as it
//     harms them. When its object was deleted by somebody else, another one is created only if the class or the claim's owner
//     wants that, whether or not the manager was restarted meanwhile.
//   - A namespace that was deleted and made again does not inherit what its predecessor of that name had, while a cluster that
//     replaces another one under the same identifier does (residence.go).
//   - What comes back, status and Secrets, does not wait for what goes up.
//   - Before anything is created for a claim, the claim has a finalizer. The finalizer goes when a live read of the hub has
//     shown that nothing of the claim is left there. Objects of other sources are not touched.
//   - What is put into a workload cluster names its hub (package hubidentity): definitions and Secrets by a label, claims by the
//     finalizer, fields by the field manager. What names another hub is not touched, unless this hub took the cluster over from
//     that one. What names none was written before hubs had identities, and is carried over; a claim is never without a finalizer.
//   - An object of the hub is only written in the state in which it was looked at, so that one that became another source's
//     meanwhile is not overwritten.
//   - Nothing is created for a claim while a creation of an object for it in another namespace of the hub can be under way.
//   - A refusal by the policy that protects what Masthead put into a cluster is not reported while the cluster may know Masthead as
//     another user (package readonlypolicy).
//   - A claim is not let go while an object could still be created for it by a request that this process has given up, or that
//     a predecessor sent before it was killed (inflight.go, package fence).
//   - A claim is not deleted in the hub while Crossplane creates its composite resource, which it would lose (unbound.go).
//   - What the user writes travels: spec, labels and annotations, and their removal. What Crossplane writes is not fought
//     (machinery.go). What somebody in the hub changes in the user's fields is put back. spec.resourceRef does not
//     travel, nor does spec.crossplane.resourceRefs of a composite, nor do labels and annotations of Crossplane, Kubernetes and
//     deployment tools (package usermeta), or that the class excludes.
//   - The hub's status is shown whole, with one condition of ours, AgentSynced, whose reasons are constants in reasons.go.
//   - What Crossplane fills in late is shown in the claim's spec, under a field manager of its own and without force. What the
//     user writes is never overridden, and what was filled in never travels back as his wish (lateinit.go).
//   - What goes with a claim is decided by the class and, towards more care only, by the claim (release.go). What is released
//     keeps its content, and names no source; our field manager gives up its fields.
//   - An object of the hub that names no source is adopted only with a consent that is on the object (adopt.go).
//   - A connection Secret is copied only if the hub's claim is its controller, and written only where no Secret is or one
//     that the claim in the workload cluster controls. What somebody changes in it is put back, also when it was changed while
//     the cluster was away. A copy for which the claim does not ask any more is deleted. A change of the hub's Secret that is
//     not one of its content writes nothing.
//   - Of a composite, every Secret that the hub's composite controls is copied like that, under its own name, and the copy is
//     deleted when the composite does not compose it any more (secret_composed.go). No Secret is found by its name alone.
//   - What a workload cluster refuses is told as a problem of the claim, with the hub's status beside it, and tried again
//     slowly. Texts of its API server are repeated without control characters and up to 256 characters.
//   - Kinds are followed in the hub only because the hub offers them, or has a definition that Crossplane made for claims.
//   - Nothing is written that is there already. A claim costs four requests: its finalizer, the apply in the hub, one write of
//     the status, for which our condition waits for the hub's first status, and one that shows what Crossplane has filled in and
//     records the object, which waits until the claim is ready, or as long as that. An idle fleet costs none. After a restart,
//     and when a cluster comes back, each connection Secret is compared once: two reads.
//   - Nothing blocks. What is not known yet makes a request when it becomes known. What cannot be watched for (a missing
//     right in the hub, a foreign definition in the workload cluster) is looked at again after one to
//     one and a half minutes. A foreign Secret in the way of a connection Secret is watched by its name, as far as there are no
//     more than 16 of them in a cluster (secret_awaited.go).
//
// # Decisions
//
//   - Nothing is decided while the hub's claims of the kind are not known: not a push, and not a deletion.
//   - A claim kind that is withdrawn, or that the class does not offer any more, keeps its definition in the workload
//     clusters as long as they have claims of it, because deleting it would delete them. Claims of it are not pushed
//     (KindNotOffered), and can still be deleted. When there is none, the definition is closed for a minute, in which the API
//     server refuses new ones, and then removed if a live list still shows none (withdrawal.go): a claim that was accepted is
//     not lost, provided that every API server of the cluster learns of a changed definition within that time.
//   - A cluster whose enrolment ends, or is not allowed any more, while it is connected is taken leave of: its claims lose our
//     finalizer, and their objects stay in the hub with their source, so that they are taken over when it is enrolled again
//     (leaving.go). A class with mode Disabled does the same, and leaves its clusters alone otherwise. That claims which are
//     deleted afterwards leave their objects in the hub is the price of never holding up anybody.
//   - Whose rights in the hub are used for a claim, its namespace says by an annotation, else its class; see identity.go. A
//     deletion has the rights of the creation, which the hub's object names. Only in a namespace that is deleted, which loses
//     its Secrets before its claims, it falls back to the credentials that were used last, and to the class's identity.
//   - Nothing is pushed while the namespaces of the workload cluster are not known: an annotation that was not seen would send
//     a claim to the wrong place. Deletions do not need to know them.
//   - A target namespace that changes moves nothing silently: the claim says TargetNamespaceChanged until it is deleted, the
//     change is undone, or somebody asks in so many words to have it made anew (move.go). A deletion deletes the object where
//     the claim records it, and where it would go now.
//   - A finalizer does not keep a claim that is deleted in the instant in which the finalizer is added; what such a claim left
//     in the hub is deleted when the watch reports its end (vanished.go). No other absence of a claim deletes anything in
//     the hub: not an empty cluster, not a cluster that is gone, not a finalizer that somebody removed by force.
//   - Nothing is deleted while the class is not known, since it may say Orphan, nor for a policy that is misspelt.
//   - A cluster whose identifier changes has other claims from then on: what it pushed under the old identifier is somebody
//     else's, and stays in the hub until a cluster has that identifier again.
//   - A definition without the label masthead.dev/managed-by, or with a controller, is somebody else's; it is left alone and claims of its kind are
//     not synchronised. If it had the label once, claims that bear our finalizer can still be deleted. Only if its kind was
//     withdrawn as well, and the manager restarted, does nobody know of it any more.
//   - When the Secret of which a connection Secret is a copy goes from the hub, the claim says SecretMissing and the copy is
//     kept: whoever uses it is not cut off because it is, say, being restored. It goes with the claim.
//   - A cluster with more claims of a kind than the budget of its watches allows has none of them synchronised; see
//     ReasonClaimsTooLarge.
//   - Definitions travel without their conversion webhook, which is a Service of the hub. Where there is one, the workload
//     cluster serves no other version than the one that travels, and objects of another are never taken for it
//     (conversion.go). Between the look that shows that there are none and the change of the version lies an instant.
//     Claims are read and written in the version that is stored in the hub, if it is served.
//   - A name of a connection Secret that two claims of different namespaces ask for is, in one target namespace, the same
//     Secret: Crossplane gives it to the first, and says so in the status of the second.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// The ability to have claims in the namespaces that the class pairs with the cluster, with the content of the cluster's own
// claims, and to read the status and the connection Secrets of these. Not more:
//
//   - The source annotations in the hub are always ours; those on the claim in the workload cluster are ignored. So nobody
//     can pass a claim off as another cluster's, or take another's over.
//   - Consent to an adoption is written in the hub, in annotations that do not travel. What a claim says about adoption counts
//     only for an object that was its own source's and that was released, as the hub's note says.
//   - The deletion policy of a claim can only keep what its class would delete. What is kept stays in the target namespace.
//   - Forged managedFields of a claim make fields of its spec travel or not, which its owner can have by editing the spec.
//   - Taking leave writes to the cluster only, with the cluster's own credentials, and ends when it does not answer. Who delays it
//     keeps a goroutine and his own enrolment for five minutes.
//   - Names from the workload cluster are never followed: spec.resourceRef and spec.crossplane.resourceRefs are not pushed
//     (Crossplane would read what the latter names, give it to the composition, and delete it), and the name of a Secret selects
//     only among the Secrets that the claim's object in the hub controls. Which Secrets of a composite are copied, no name
//     decides. Tokens of service accounts of the hub are not copied, even if they were composed.
//   - By an annotation on his own namespace the owner chooses a target namespace, and reaches one that the class's
//     allowedTargetNamespaces has, and no other; if the class does not say and another identity than the manager's is used,
//     what that identity may write to. Whether another one exists is not told.
//   - With credentials of his own he has in the hub what these give him without us. Only a token or a client certificate is
//     taken from his kubeconfig, and only the hub sees it, at the manager's address of the hub (identities.go). They are never
//     used for another cluster, nor for another namespace than the one whose annotation names them.
//   - An identity cannot be used to look where it may not read. The watch of the hub's claims is the manager's own, one for all.
//     It leads to nothing but this: the status of an object that names this claim as its source, which is the claim's; whether
//     a name is taken, which is told to an identity that may read there, and to one that may not create there looks as if it
//     were free (disclosable); and the metadata of a connection Secret
//     that the claim's object controls, whose content is then read with the identity's rights. What is deleted is what names
//     the claim as its source, with the identity's rights.
//   - He cannot use the manager's rights where the class gives him another identity: everything that is done in the hub needs
//     an identity in its context (identity.go), and fails without. The exceptions are named there: finding what names a claim
//     as its source while where it goes is not known, and seeing that nothing does where the identity may not look. Both are
//     for letting claims go, and nothing of what is found is told.
//   - With matchNamespaces, the owner of the workload cluster chooses the target namespace by the name of his own. It is a
//     class for clusters whose owners may use those namespaces, unless it has allowedTargetNamespaces. Namespaces of the control plane are always refused, also as
//     a default: those that begin with "kube-", those that end in "-system", "cert-manager", and Options.ProtectedNamespaces.
//     Others, such as "default" and those that hold enrolled clusters, are not refused.
//   - A conflict tells the identifier and the namespace of the holder, and nothing else of it.
//   - Labels such as masthead.dev/managed-by can be forged in the workload cluster. That makes its owner's own definition
//     or Secret look like ours, in his own cluster; a Secret is written or deleted only if the claim controls it as well, and
//     a definition whose kind is not offered counts for the hub only as far as the hub's own definition says the same. A
//     definition that he labels like that, and that has no objects, is removed.
//   - The kind, the name and the namespace of what is written to the hub are those that were asked for and the class's,
//     whatever his API server answers. How much it can answer is bounded (pkg/kindwatch).
package agent
