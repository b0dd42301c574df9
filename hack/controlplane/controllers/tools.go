// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controllers pins the binaries of Crossplane and of Cluster API that test/localfleet starts as processes. They
// are one module because both use the same minor version of the libraries of Kubernetes: the packages that they share
// are compiled only once.
package controllers

import (
	_ "github.com/crossplane/crossplane/v2/cmd/crossplane"
	_ "sigs.k8s.io/cluster-api/core"
)
