// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/masthead-dev/masthead/pkg/health"
)

func TestPageIsUpToDate(t *testing.T) {
	library, err := health.NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join("..", "..", "docs", "health-library.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page(library) {
		t.Error("docs/health-library.md is not what the library says; run make generate")
	}
}
