// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controllers pins the binaries of Crossplane and of Cluster API that test/localfleet starts as processes. They
// are one module because both are made of one minor version of the libraries of Kubernetes: what they share is compiled
// once.
package controllers

import (
	_ "github.com/crossplane/crossplane/v2/cmd/crossplane"
	_ "sigs.k8s.io/cluster-api"
)
