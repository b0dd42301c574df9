// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer reflects clusters of EKS, AKS and GKE as objects of Cluster API, as ClusterImports request.
// pkg/reflection decides what is wanted; this package reads and writes.
//
// # Guarantees
//
//   - Nothing is written to an imported cluster or to its cloud. In the cluster, Nodes are listed and the credentials'
//     rights are reviewed; where the spec names a ServiceAccount, a token of it is requested, of which the cluster
//     keeps nothing. In the cloud, Crossplane observes.
//   - Where the spec names a ServiceAccount, the credentials of the source are used only to request its token. The
//     Secret with the kubeconfig never holds them, whether the request succeeds or not. The Secret that the Crossplane
//     provider writes, or that the spec names, still does.
//   - Nothing is created while the admission policies of pkg/takeover are not enforced, or while something else manages
//     the cluster.
//   - A managed resource is created paused, after a dry run of the same object, and unpaused once the API server's
//     reply has been checked for the policy Observe. One that has another policy is neither changed nor deleted: with
//     another policy, its deletion can delete the cluster.
//   - An object without the label of this very ClusterImport is never written and never deleted, regardless of its
//     name. With the label, it is deleted and trusted only in the namespace and under the name that the import gives: a
//     copy, such as a restored backup, is reported in an event.
//   - A Cluster or a MachinePool that refers to anything that the import did not create is not deleted, because Cluster
//     API core deletes what they refer to. Neither is a MachinePool with Nodes in its status, because core deletes
//     them.
//   - The ID of the cluster in the cloud is fixed when it is first observed. Another cluster of the same name is not
//     reflected.
//   - All managed resources of an import use the one provider configuration that was checked against what the import
//     may use.
//   - Deletions have the observed UID and resourceVersion as preconditions, and are not foreground deletions.
//   - Un-import proceeds in an order in which nothing can act on the cluster in between: the kubeconfig, until its
//     Secret is gone, then the provider's objects, then the Cluster and its MachinePools, then the managed resources,
//     then the finalizer. Finalizers of others are never removed.
//   - A node pool whose name is taken is left out; nothing else waits for it. An existing kubeconfig is kept up to date
//     while the reflection stops.
//   - An import that may no longer use its provider configuration loses all its objects. The leftovers of an import
//     whose finalizer somebody removed are deleted the same way; the manager also looks for them when it starts.
//   - Credentials are withdrawn with the label, the Secret or the hub's ServiceAccount that provided them, or with the
//     right to that ServiceAccount's tokens, regardless of what else stops the import. That holds for what the spec
//     names: those of another source are removed when the spec changes, unless the new source provides replacements.
//   - What a Secret records about its credentials counts only for the kubeconfig with which it was written, byte by
//     byte. Without a record, it stays until the source is asked, and is removed if that gives nothing.
//   - A working ServiceAccount token is used until it expires, also while its source fails, unless it is withdrawn.
//   - A token of a hub ServiceAccount is requested only in the namespace of the ClusterImport, if the ServiceAccount
//     has the label that allows the import, for one audience, which is no API server's, and for ten minutes. It is sent
//     once, to an endpoint that the operator allows, and stored nowhere.
//   - The status names existing objects and no others: the admission policies rely on it.
//   - While another object names the cluster for which Cluster API core would write to its Nodes, core gets no
//     credentials.
//   - Each step reads the current state, so the manager can be stopped anywhere.
//   - No write when nothing changed.
//
// # Where to change what
//
//   - the steps and their order: controller.go; the result of one pass: package scope;
//   - the prerequisites, and who may import what: preflight.go, collisions.go, elsewhere.go, members.go;
//   - managed resources, and how they are unpaused: managed.go; their reflections: reflected.go;
//   - how objects of the hub are written, and who owns them: apply.go, own.go;
//   - the Secret with the kubeconfig: kubeconfig.go, source.go, hubtoken.go, serviceaccount.go; tokens: package token;
//   - queries to imported clusters, and when: access.go, package workload; how many at once: package places;
//   - un-import: unimport.go, and for the leftovers of imports that are gone: orphans.go, leftovers.go;
//   - what users see: status.go.
//
// # What does the owner of an imported cluster gain from the hub or another cluster through this?
//
// Answers of the cluster are bounded, and of its Nodes only labels, the kubelet's version and readiness are read. Its
// API server is sent the credentials of its own kubeconfig, and no others. Redirects are not followed. A ServiceAccount
// token that it issues is a text of bounded size that lives for two hours at most, and is sent back only to that very
// server, identified by its authority: with the token of another cluster, or of another account, its owner gains what a
// kubeconfig of theirs gains. A cluster that issues no token, or does not accept those that it issued, is asked less
// and less often, down to every five minutes. Clusters that hang take half of the workers at most, those of one
// namespace half of that, and are asked less and less often. Cached Nodes are charged to the budget of the process. An
// answer that is too large or truncated is the cluster's fault: it is requested again, and the import is not reported
// as one that somebody has to fix.
//
// # What does the author of a ClusterImport gain?
//
// The rights of the Crossplane provider configuration, to observe. So a cluster-scoped configuration must allow the
// namespace. With their own configuration, tenants can present the ID of anybody's cluster, so neither such an ID nor a
// name prevents anybody else from importing it. Secrets are read in the namespace of the ClusterImport alone, and only
// with a label, set by somebody who may write them, for the namespace or for one import; likewise the hub's
// ServiceAccounts, whose identity in a cloud could otherwise be sent to a cluster of the writer's; a connection Secret
// only if the managed resource of the import controls it. Tokens are requested only at endpoints that the operator
// allows. An endpoint is not restricted to one step, which would gain nothing: the writer can have Google be sent what
// is for Entra ID, but the operator trusts every recipient of it with credentials, and the writer sees no answer but a
// token in the kubeconfig of the import. An endpoint that a tenant runs would be sent as much for its intended step, so
// none must be allowed. A ServiceAccount token gives no right that the source's credentials do not give already: anyone
// who may request it may act as that ServiceAccount. Kubeconfigs are checked by pkg/providers/credentials: exec,
// auth-provider, impersonation and files are refused.
package importer
