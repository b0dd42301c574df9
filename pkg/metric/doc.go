// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metric is the one place that knows how a metric is described and how it names a workload cluster. The
// packages that publish metrics keep what they count; they say here what it is called.
//
// It guarantees:
//
//   - every metric of a cluster has the same three labels for it, see ClusterValues, so that metrics can be joined and
//     a dashboard needs one set of variables. There is none called "cluster": that is what many installations of
//     Prometheus call the cluster that is scraped, and a label of the target hides one of the metric;
//   - two clusters never share a series, also if one's name is not of the usual form;
//   - the reference in docs/reference/metrics.md is made of the definitions with which the metrics are made, see
//     Recorder.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. The labels are names of objects in the hub, which the owner of a workload cluster does not choose. A further
// label must have values of ours, or of the hub.
package metric
