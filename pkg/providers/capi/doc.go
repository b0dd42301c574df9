// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capi enrols Clusters of Cluster API that carry the label masthead.dev/enroll, with the kubeconfig that
// Cluster API keeps in the Secret <cluster>-kubeconfig.
//
// Clusters are watched in full, Secrets by their metadata only; the Secret of a Cluster is read from the API server
// when a connection is made or its version has changed. Describe decides on enrolment, not a predicate on the label, so
// that removing the label is noticed. The Secret must carry the label of the Cluster and be of Cluster API's type, or
// Opaque if it was created by hand.
//
// A Cluster is ready when Cluster API reports that its control plane is initialized. For a control plane without a
// Cluster API object this is never reported: provisioned infrastructure and an endpoint are enough. Both spec.paused
// and the annotation cluster.x-k8s.io/paused pause.
package capi
