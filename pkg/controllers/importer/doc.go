// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer reflects clusters of EKS, AKS and GKE as objects of Cluster API, as ClusterImports request.
// pkg/reflection decides what is wanted, and the package ownership whose an object is; this package reads and writes.
// docs/design/importer-safety.md has the threats. It guarantees:
//
//   - Nothing is written to an imported cluster or its cloud. A ServiceAccount's token is requested only if the spec
//     names it, and then the source's credentials are used for nothing else.
//   - Nothing is created while the policies of pkg/takeover are not enforced or something else manages the cluster. A
//     managed resource is created paused, verified, and unpaused; one with another policy than Observe is neither
//     changed nor deleted.
//   - Only objects with the label of this very ClusterImport, in the place that it gives, are written or deleted;
//     nothing that refers to what the import did not create. Deletions have UID and resourceVersion as preconditions.
//   - The ID of the cluster is fixed when it is first observed.
//   - What a webhook of the hub refuses costs fields of a reflection, or a pool, and never what keeps controllers from
//     acting.
//   - Un-import ends the kubeconfig first, then the provider's objects, the Cluster, the managed resources, the
//     finalizer.
//   - Credentials are withdrawn with their label, Secret, ServiceAccount or right, even if the import is stopped. A
//     record in a Secret counts only for the kubeconfig with which it was written. The status names what exists and
//     nothing else: policies rely on it.
//   - Each phase reads the current state, so the manager can be stopped anywhere. Messages are bounded and cleaned.
//
// What does the owner of an imported cluster gain? Only its own kubeconfig's credentials, bounded reads, and no
// redirects. What does the author of a ClusterImport gain? Observing with a provider configuration that allows the
// namespace; credentials only with a label set by a user who may write them; tokens only from endpoints that the
// operator allows.
package importer
