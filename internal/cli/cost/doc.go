// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cost computes the cost of each cluster from a manager's metrics. It does no I/O except reading one text.
//
// It guarantees that a counter reset by a restart never yields a negative rate, and that a missing metric is not shown
// as zero cost of something else.
package cost
