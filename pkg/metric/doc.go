// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metric defines how metrics are described and labelled with a workload cluster. The packages that publish
// metrics own the values; they define names and labels here.
//
// It guarantees:
//
//   - every metric of a cluster has the same three labels for it, see ClusterValues, so that metrics can be joined and
//     a dashboard needs one set of variables. None is called "cluster": many Prometheus installations use that for the
//     scraped cluster, and a target label hides a metric label;
//   - two clusters never share a series, even if one's name does not have the usual form;
//   - the reference in docs/reference/metrics.md is generated from the metrics' definitions, see Recorder.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. The labels are names of objects in the hub, which the owner of a workload cluster does not choose. The
// values of any further label must come from Masthead or the hub.
package metric
