// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollup sums up the Applications of each cluster and writes the totals to the hub, as an ApplicationReport
// beside the object that enrols the cluster.
//
// A current report shows the present state; any other says why it is not current, and the last known state. It is
// written at most once a second, and not if unchanged. It is removed only when the cluster's source says that the
// cluster is not enrolled, and none is created for a deleted enrolled object.
//
// rollup.go has the Collector, which receives each Application, and totals.go adds them up. report.go computes the
// report. These are pure, or touch memory only. The controller that writes is in writer.go and apply.go.
//
// What does the owner of one workload cluster gain? Their cluster's report has a bounded summary of their content,
// which appears in no other report.
package rollup
