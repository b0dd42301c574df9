// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies holds the admission policies that keep imported clusters safe, as they are installed in a hub. They
// are part of the program, so that the importer can compare what a hub has with what it needs (pkg/takeover).
package policies

import (
	"embed"
	"io/fs"
)

//go:embed managed-resources.yaml reflections.yaml cluster-api.yaml identities.yaml members.yaml managers.yaml
var files embed.FS

// Files are the policies and their bindings, one policy and its binding in a file. A test of another cloud adds to
// them.
var Files fs.ReadFileFS = files
