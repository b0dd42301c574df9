// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig enrols clusters by Secrets of the hub that carry the label masthead.dev/enroll and hold a
// kubeconfig in the key kubeconfig or value. A Secret that has both keys, with different values, is refused.
//
// Secrets are watched by their metadata only, and the Secret of an enrolment is read from the API server when a
// connection is made or its version has changed. Describe decides on enrolment, not a predicate on the label, so that
// removing the label is noticed.
package kubeconfig
