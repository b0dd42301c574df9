// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reflection decides what an import observes and how an observed cluster is represented as Cluster API objects.
// It is pure: it has no client, no clock and no state. The importer reads and writes; this package says what.
//
//   - Wanted: the managed resources by which Crossplane observes the cluster.
//   - Read: the facts, from status.atProvider of those managed resources and the labels of the cluster's Nodes.
//   - Reflect: the objects of Cluster API and of its provider for the cloud, each with the status it needs.
//
// docs/design/importer-mapping.md has the tables: which field becomes which, and when it is lossy.
//
// A cloud is a table of functions (cloud.go) and two files: what is observed of it, and how that is represented. The
// three entry points look up their cloud (clouds.go), and pass it a collector (wanter.go, reader.go, reflector.go).
//
// # Guarantees
//
//   - A managed resource holds identifiers only and has managementPolicies ["Observe"], and deletionPolicy Orphan where
//     its kind has one. ClusterAuth is the one exception: its controller ignores policies, and writes nothing to the
//     cloud.
//   - Every object that a controller of Cluster API reconciles is created with cluster.x-k8s.io/managed-by and, except
//     for the Cluster, with cluster.x-k8s.io/paused, without finalizers, and without providerIDList, for which Cluster
//     API core would write to Nodes.
//   - Every control plane refers to credentials that the provider must refuse or cannot find.
//   - Values are checked against the schema of the installed kind. What does not fit is left out and listed as lossy,
//     together with the default that applies instead. Nothing that was observed is replaced silently.
//   - The same input gives the same objects, byte for byte, so that a server-side apply of them changes nothing.
//   - A pool keeps the names of its objects when other pools are added or removed.
//   - An observed pool stays until its provider finds that it does not exist: one scaled to zero has no Nodes.
//
// # What does the owner of an imported cluster gain from the hub or another cluster through this?
//
// Observations are foreign text: the owner of the cloud account chooses names, tags, labels and sizes, the owner of the
// cluster the labels of its Nodes.
//
//   - Names from observations and Node labels are checked against the cloud's grammar before they become an identifier:
//     "a:b" or "a/../b" cannot make a provider look up another resource. The lookup runs with the credentials that the
//     import names.
//   - What the provider observed must be the cluster that the import names, by its ARN, ID or path. Otherwise nothing
//     is reflected.
//   - Object names consist of the import's names and a hash of the foreign one: DNS labels, unique, never another
//     import's.
//   - No tag and no label of the cloud becomes a label of an object in the hub, so it cannot affect selectors there.
//     Labels of pools are values in their spec.
//   - Numbers of pools, subnets, labels, taints and routes, and lengths of texts, are bounded; so are the entries of
//     what is lossy. An import costs the hub no more than these bounds.
//   - An endpoint is a host and a port of HTTPS, without path and credentials. It may be any host: clients must connect
//     to it only with the cluster's own kubeconfig and credentials.
package reflection
