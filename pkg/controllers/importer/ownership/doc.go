// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership decides whose an object is: what an import names and marks (Marks), which import made an object
// (MadeBy), what Cluster API core would delete with it (Cascades), of which cluster an import was whose objects alone
// are left (InferCluster), and what else manages its cluster (Manages) or imports it (ImportedBefore). Everything here
// is pure: the caller reads and writes.
//
// What does the owner of one imported cluster gain? Nothing: only objects of the hub and imports are compared. What
// does a tenant gain? A label or a name alone makes no object an import's. Without the import's provider configuration,
// no resource or import of another tenant stops it, as both can present any cluster's ID.
package ownership
