// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package clusterapi pins the clusterapi binary that test/localfleet starts as a process.
package clusterapi

import _ "sigs.k8s.io/cluster-api"
