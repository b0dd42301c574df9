// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindfleet runs a fleet in kind: a hub of two nodes with Crossplane core, its composition function and Cluster
// API core as Pods, and workload clusters of one node each, enrolled over the network of the container engine. It is to
// test/e2e what test/localfleet is: one of the two fleets on which it runs. What the hub is made of is the same.
//
// It needs an engine that answers (hack/kindnode/engine.sh sees to it), kind, helm, the image of a node, and the images
// that hack/kindnode/images.sh makes. Where the node's image brings no network for Pods, as the one that is built by
// the script hack/kindnode/image.sh, without kindnetd, the nodes are given one: a range of addresses each, and routes
// between them. There is no network then that would enforce a NetworkPolicy.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing: it is no part of a release. In the hub, Crossplane core and Cluster API core are cluster administrators, and
// Masthead is not.
package kindfleet
