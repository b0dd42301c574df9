// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory publishes the fleet in the hub: a ClusterProfile for each enrolled cluster, and in each
// EnrollmentClass how many clusters name it and are connected. It guarantees, for ClusterProfiles:
//
//   - Each is beside the enrolled object, which owns it, and written by server-side apply only when something differs.
//     What was last observed stays while a cluster is not connected, and Pins reads it back after a restart.
//   - status.accessProviders (KEP-5339) has no credentials, nor anything that could hold any.
//   - One is removed only if it is ours, and its own source reports from a synced cache that its cluster is not
//     enrolled: a fleet that looks empty removes nothing. One of another cluster manager is left alone, and reported
//     once.
//
// Writers of ClusterProfiles in a namespace can alter what Masthead remembers about its clusters: that right belongs to
// the platform's administrators. Rejected: a sweep that removes every profile not in the fleet, since with several
// sources the fleet is never known to be complete.
package inventory
