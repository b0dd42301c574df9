// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricreference prints docs/reference/metrics.md.
package main

import (
	"os"

	"github.com/masthead-dev/masthead/internal/metricreference"
)

func main() {
	_, _ = os.Stdout.WriteString(metricreference.Markdown())
}
