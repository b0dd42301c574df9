// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindfleet runs a fleet in kind: a hub of two nodes with Crossplane core, its composition function and Cluster
// API core as Pods, and workload clusters of one node each, enrolled over the network of the container engine. Like
// test/localfleet, it is one of the two fleets on which test/e2e runs. The hub has the same components in both.
//
// It needs a running container engine (hack/kindnode/engine.sh ensures that), kind, helm, a node image, and the images
// that hack/kindnode/images.sh creates. If the node image brings no network for Pods, like the one
// that hack/kindnode/image.sh builds without kindnetd, the nodes get one: a range of addresses each, and routes between
// them. In that case, nothing in the network enforces a NetworkPolicy.
package kindfleet
