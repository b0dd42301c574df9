// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds has how much a status repeats of what others wrote: texts that come from a workload cluster are cut
// and cleaned before they get into a status or to the hub.
//
// It is pure. A limit that the API's schema has as well is changed here and there together.
//
// What does the owner of one workload cluster gain? No text of theirs is longer than here, or moves a terminal's
// cursor.
package bounds
