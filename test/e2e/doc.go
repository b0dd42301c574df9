// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Masthead with the rights that are shipped, over a fleet of real control planes: a hub with
// Crossplane and Cluster API, and workload clusters. Its specs break things as they break in production: API servers
// are frozen and killed, managers die, and credentials are revoked.
//
// The suite runs on one of two fleets (Fleet, Manager):
//
//   - Local processes (`make test-e2e`, and `make test`): three workload clusters of test/localfleet, and bin/manager
//     as a process. Here a signal stops exactly one program, at a certain moment, several managers run side by side,
//     clouds and hostile clusters are simulated, and Prometheus scrapes the managers. Two processes of the suite run
//     side by side, each with such a fleet and with a part of the specs (secondFleet).
//   - kind (`make e2e-kind`; docs/development.md): two workload clusters of test/kindfleet, and the manager as two
//     Pods, which the charts install from the released image.
//
// A spec runs on both, with the variables fleet, manager and workloads, unless it declares with needs which fleet it
// needs, and why. Each run ends with a list of the specs that ran and that did not run, and fails if a spec did not run
// and declares no reason.
package e2e
