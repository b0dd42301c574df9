// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer reflects clusters of EKS, AKS and GKE as objects of Cluster API, as ClusterImports ask for it. What
// is wanted is decided in pkg/reflection; this package reads and writes.
//
// # Guarantees
//
//   - Nothing is written to an imported cluster or to its cloud. In the cluster, Nodes are listed and the credentials'
//     rights are asked for; where the spec names a ServiceAccount, a token of it is, of which the cluster keeps
//     nothing. In the cloud, Crossplane observes.
//   - Where the spec names a ServiceAccount, the credentials of the source ask for its token and do nothing else. The
//     Secret with the kubeconfig never holds them, whatever comes of the request. The Secret that the Crossplane
//     provider writes, or that the spec names, still does.
//   - Nothing is created while the admission policies of pkg/takeover are not enforced, or while something else manages
//     the cluster.
//   - A managed resource is created paused, after a dry run of the same object, and released once the API server's
//     reply was held against the policy Observe. One that has another policy is not touched any more, and is not
//     deleted: with another policy, its deletion can be that of the cluster.
//   - An object without the label of this very ClusterImport is never written and never deleted, whatever its name is.
//     With the label, it is deleted and believed only in the namespace and under the name that the import gives: a
//     copy, such as a restored backup, is told of in an event.
//   - A Cluster or a MachinePool that refers to anything that the import did not make is not deleted, because Cluster
//     API core deletes what they refer to. Neither is a MachinePool with Nodes in its status, because core deletes
//     them.
//   - The ID of the cluster in the cloud is fixed when it is first observed. Another cluster of the same name is not
//     reflected.
//   - All managed resources of an import use the one provider configuration that was held against what the import may
//     use.
//   - What is deleted is deleted with the UID and the resourceVersion that were looked at, without foreground deletion.
//   - Un-import goes in the order in which nothing can act on the cluster in between: the kubeconfig, until its Secret
//     is gone, then the provider's objects, then the Cluster and its MachinePools, then the managed resources, then the
//     finalizer. Finalizers of others are never removed.
//   - A node pool whose name is taken is left out; nothing else waits for it. A kubeconfig that is there is kept up to
//     date while the reflection stops.
//   - An import that may no longer use its provider configuration has nothing. What an import has left whose finalizer
//     somebody took away is removed the same way; the manager looks for it when it starts, too.
//   - Credentials are withdrawn with the label, the Secret or the ServiceAccount of the hub that gave them, or with the
//     right to the tokens of that ServiceAccount, whatever else stops the import. That is so for what the spec names:
//     those of another source go with the change of the spec, unless the new source gives some in their place.
//   - What a Secret says of the credentials in it counts for the kubeconfig with which it was written, byte by byte.
//     One that says nothing of it is left until the source is asked, and goes if that gives nothing.
//   - A token of a ServiceAccount that works is used until it ends, also while its source fails, unless it is
//     withdrawn.
//   - A token of a ServiceAccount of the hub is asked for in the namespace of the ClusterImport alone, if the
//     ServiceAccount bears the label that gives it to the import, for one audience, which is no API server's, and for
//     ten minutes. It is shown once, to an endpoint that the operator allows, and kept nowhere.
//   - The status names what is there, and nothing that is gone: the admission policies go by it.
//   - While something else names the cluster for which Cluster API core would write to its Nodes, core gets no
//     credentials.
//   - Each step looks at what is there, so that it makes no difference where the manager was stopped.
//   - No write when nothing changed.
//
// # Where to change what
//
//   - which steps there are, and in which order: controller.go; what one look found: package scope;
//   - what has to be there before, and who may import what: preflight.go, collisions.go, elsewhere.go, members.go;
//   - managed resources, and how they are released: managed.go; their reflections: reflected.go;
//   - how objects of the hub are written, and whose they are: apply.go, own.go;
//   - the Secret with the kubeconfig: kubeconfig.go, source.go, hubtoken.go, serviceaccount.go; tokens: package token;
//   - what imported clusters are asked, and when: access.go, package workload; how many at once: package places;
//   - the way back: unimport.go, and for what is left of imports that are gone: orphans.go, leftovers.go;
//   - what users are told: status.go.
//
// # What does the owner of an imported cluster gain from the hub or another cluster through this?
//
// Answers of the cluster are bounded, and of its Nodes only labels, the kubelet's version and readiness are read. Its
// API server is sent the credentials of its own kubeconfig, and no others. Redirects are not followed. What it gives as
// the token of a ServiceAccount is a text of bounded size that lives for two hours at most, and goes back to that very
// server, by its authority, and nowhere else: with the token of another cluster, or of another account, its owner gains
// what a kubeconfig of theirs gains. A cluster that gives no token, or does not know those that it gave, is asked less
// and less often, down to every five minutes. Clusters that hang take half of the workers at most, those of one
// namespace half of that, and are asked less and less often. What is kept of Nodes is charged to the budget of the
// process. An answer that is too large, or breaks off, is the cluster's fault: it is asked again, and nobody is told to
// mend the import.
//
// # What does whoever writes a ClusterImport gain?
//
// The rights of the Crossplane provider configuration, to observe. So a cluster-scoped configuration must allow the
// namespace. With a configuration of one's own one can show the ID of anybody's cluster, so such an ID, and all the
// more a name, keeps nobody else from importing it. Secrets are read in the namespace of the ClusterImport alone, and
// only with the label that somebody who may write them gives them, for the namespace or for one import; ServiceAccounts
// of the hub likewise, whose identity in a cloud could otherwise be sent to a cluster of the writer's; a connection
// Secret only if it is controlled by the managed resource of the import. Tokens are asked for only at endpoints that
// the operator allows. For which step an endpoint is allowed is not said, and nothing would be gained if it were: the
// writer can have Google be sent what is for Entra ID, but whoever receives it is trusted by the operator with
// credentials, and the writer sees no answer but a token in the kubeconfig of the import. An endpoint that a tenant
// runs would be sent as much for the step that it is for, so that none must be allowed. A token of a ServiceAccount,
// whichever the spec names, gives no right that the credentials of the source do not give already: who may ask for it
// may act as that ServiceAccount. Kubeconfigs are held against pkg/providers/credentials: exec, auth-provider,
// impersonation and files are refused.
package importer
