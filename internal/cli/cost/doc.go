// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cost reads what a manager publishes of itself, and says what each cluster costs it. There is no I/O in it but
// the reading of one text.
//
// It guarantees that a counter which began anew, because the manager did, never makes a negative rate, and that what
// the manager does not publish is not shown as zero cost of something else.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: the figures
// are shown to whoever may read the manager's metrics.
package cost
