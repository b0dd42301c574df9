// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dump collects what is needed to debug a broken fleet remotely: Masthead's kinds, the objects it works on in
// the hub, its events, its Pods and their logs. It reads the hub alone, because a workload cluster is reached with a
// kubeconfig, and no kubeconfig is read.
//
// It guarantees:
//
//   - Of Secrets only metadata is read. Values of environment variables, arguments that are no flags of the manager,
//     probes, the parameters of claims, the resources of Compositions, variables of Clusters and defaults in schemas
//     are left out, regardless of what they hold: the dump uses an allow list.
//   - Only annotations of Masthead, Crossplane or Cluster API keep their values.
//   - Every text in the dump, including logs, passes through Redact, which removes what looks like credentials.
//   - What could not be read is in the dump, with the reason.
//   - No name from an API server leads out of the folder or the archive.
package dump
