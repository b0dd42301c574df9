// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capi enrols Clusters of Cluster API that carry the label masthead.dev/enroll, with the kubeconfig that
// Cluster API keeps in the Secret <cluster>-kubeconfig.
//
// Clusters are watched whole, Secrets by their metadata only; the one Secret of a Cluster is read from the API server
// when a connection is made or its version has changed. Enrolment is decided when a Cluster is described, never by a
// predicate on the label, so that an update that removes the label is seen. The Secret must carry the label of the
// Cluster and be of Cluster API's type, or Opaque if it was made by hand.
//
// A Cluster is ready when Cluster API says that its control plane is initialized. Nobody says so of a control plane
// that no object of Cluster API stands for: there, provisioned infrastructure and an endpoint are enough. Both
// spec.paused and the annotation cluster.x-k8s.io/paused pause.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing: only objects of the hub are read here. A name never leads out of the Cluster's own namespace.
package capi
