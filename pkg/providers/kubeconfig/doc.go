// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig enrols clusters by Secrets of the hub that carry the label masthead.dev/enroll and hold a
// kubeconfig in the key kubeconfig or value. A Secret that has both keys, with different values, is refused.
//
// Secrets are watched by their metadata only, and the one Secret of an enrolment is read from the API server when a
// connection is made or its version has changed. Enrolment is decided when a Secret is described, never by a predicate
// on the label, so that an update that removes the label is seen.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing: only objects of the hub are read here, and of an enrolment only its own Secret.
package kubeconfig
