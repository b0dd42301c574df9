// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reflection decides what an import observes (Wanted), reads the facts (Read), and represents a cluster as
// Cluster API objects (Reflect). It is pure: no client, no clock, no state. docs/design/importer-mapping.md has the
// tables. A cloud is a table of functions (cloud.go) and two files. It guarantees:
//
//   - A managed resource holds identifiers only, with managementPolicies ["Observe"] (a ClusterAuth, whose controller
//     ignores policies, none).
//   - Every object that Cluster API reconciles has managed-by, and, except for the Cluster, paused; no finalizers, no
//     providerIDList. Every control plane refers to credentials that the provider must refuse.
//   - Values are checked against the installed schema; what does not fit is left out and listed as lossy.
//   - The same input gives the same objects, byte for byte. A pool keeps its names when others come and go, and stays
//     until its provider finds that it does not exist.
//
// What does the owner of an imported cluster gain? Names from observations are checked against the cloud's grammar
// before they become identifiers; what was observed must be the cluster that the import names; no tag or label of the
// cloud becomes a label in the hub; numbers and lengths are bounded. An endpoint may be any host: clients must connect
// to it only with the cluster's own credentials.
package reflection
