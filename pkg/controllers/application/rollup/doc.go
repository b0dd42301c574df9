// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollup sums the Applications of each cluster up and writes the sums to the hub, as an ApplicationReport
// beside the object that enrols the cluster.
//
// A report that is current says what is true now; one that is not says why, and what was true last. It is written
// once a second at most, and not at all if nothing changed. It is removed only when the source of the cluster says
// that the cluster is not enrolled, and none is made for an enrolled object that is gone.
//
// The Collector, which is told of each Application, is in rollup.go, and what it adds up in totals.go. What a report
// says is in report.go. These are pure, or touch memory only. The controller that writes is in writer.go and apply.go.
//
// What does the owner of one workload cluster gain? The report of their cluster has a bounded summary of what they
// wrote, and no other report has anything of it.
package rollup
