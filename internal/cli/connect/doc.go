// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect computes the objects in a workload cluster, and in the hub, that Masthead needs to connect to a
// cluster unknown to Cluster API. It does no I/O.
//
// It guarantees that the rights are those of config/workload, without those for functions that the EnrollmentClass has
// Disabled, and for claims only those on the kinds that the hub offers; and that the manager accepts the kubeconfigs
// that it makes.
package connect
