// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricreference prints docs/reference/metrics.md.
package main

import (
	"fmt"
	"os"

	"github.com/masthead-dev/masthead/internal/metricreference"
)

func main() {
	page, err := metricreference.Markdown()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "metricreference:", err)
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(page)
}
