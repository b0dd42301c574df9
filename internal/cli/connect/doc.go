// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect says what has to be in a workload cluster, and in the hub, for Masthead to reach a cluster that
// Cluster API does not know. There is no I/O in it.
//
// It guarantees that the rights are those of config/workload, without those for what the EnrollmentClass has Disabled,
// and for claims those on the kinds that the hub offers and nothing else; and that a kubeconfig which it makes is one
// that the manager accepts.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: the
// kubeconfig leads to their own cluster.
package connect
