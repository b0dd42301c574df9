// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dump collects what somebody needs who looks at a broken fleet from afar: Masthead's kinds, what it works on
// in the hub, its events, its Pods and their logs. It looks at the hub alone, because a workload cluster is reached
// with a kubeconfig, and no kubeconfig is read.
//
// It guarantees:
//
//   - Of Secrets nothing is read but metadata. Values of environment variables, arguments that are no flags of the
//     manager, probes, the parameters of claims, the resources of Compositions, variables of Clusters and defaults in
//     schemas are left out, whatever they hold: what is kept is listed, not what is cut.
//   - Annotations keep their values if they are Masthead's, Crossplane's or Cluster API's.
//   - Every text that is kept, also in logs, goes through Redact, which takes out what looks like credentials.
//   - What could not be looked at is in the dump, with the reason.
//   - No name that an API server answers leads out of the folder or the archive.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: the dump is
// given to whoever runs the command. What the owner wrote is in it as text, cleaned for terminals.
package dump
