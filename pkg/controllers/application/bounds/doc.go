// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds limits what a status repeats of others' texts: texts from a workload cluster are cut and cleaned
// before they get into a status or to the hub.
//
// It is pure. Limits that are also in the API's schema are changed in both places together.
//
// What does the owner of one workload cluster gain? None of their texts exceeds these limits, or moves a terminal's
// cursor.
package bounds
