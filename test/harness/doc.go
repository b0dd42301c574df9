// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs bin/manager as a process over a fleet of test/localfleet, for the end-to-end tests and the
// benchmarks. It installs Masthead as a user does, with kubectl and the manifests in config/, and gives the manager a
// kubeconfig of the service account masthead-system/masthead, so that it works with exactly the rights that are
// shipped.
//
// The owner of a workload cluster gains nothing through it: it is not part of the product.
package harness
