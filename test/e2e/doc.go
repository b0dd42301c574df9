// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests bin/manager, as a process and with the rights that config/ gives it, over a fleet of real control
// planes: a hub with Crossplane and Cluster API, and three workload clusters. Its specs break things as they break in
// production: API servers are frozen with SIGSTOP, killed, moved to another port, and credentials are revoked.
package e2e
