// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile enrols ClusterProfiles of other cluster managers that carry the label masthead.dev/enroll.
//
// Server and authority come from an access provider in the profile's status (KEP-5339), and a token or a client
// certificate from its Secret. The Secrets of two access providers are read, without their plugins:
// kubeconfig-secretreader and secretreader. Others need a plugin of the operator, see package plugin.
//
// A profile is untrusted. The Secret must be in the profile's namespace, and name the profile in the label of KEP-4322
// that marks a profile's credentials. Without the label, who may write the status of profiles, but read no Secret,
// could have any token of the namespace sent to a server of their choice.
//
// Profiles that Masthead itself publishes are never enrolled.
package clusterprofile
