// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin runs the exec plugins of access providers (KEP-5339, client.authentication.k8s.io/v1).
//
// The operator's file alone says which programs there are, with which arguments and environment, and the operator names
// the namespaces whose ClusterProfiles they are run for. What such a profile says reaches a plugin only as the cluster
// in KUBERNETES_EXEC_INFO. That is a grant: who may write a profile has what the plugin answers sent to their server.
//
// It does not use client-go's runner, whose plugins inherit the manager's environment and its log, and have no limit.
package plugin
