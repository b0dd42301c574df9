// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload holds the definitions of the kinds that the manager itself installs in workload clusters. They are
// generated from apis/apps, and part of the program, so that a manager and its definition cannot be of different
// versions.
package workload

import _ "embed"

// Applications is the CustomResourceDefinition of Applications, as YAML.
//
//go:embed apps.masthead.dev_applications.yaml
var Applications []byte //nolint:gochecknoglobals // Embedding needs a variable. It is never written.
