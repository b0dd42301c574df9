// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the dashboards for Grafana into a folder.
//
// They are generated here rather than exported from Grafana, so that they look alike, and so that a review shows the
// queries that changed and not where a panel was moved to.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	for _, d := range dashboards() {
		var page bytes.Buffer
		encoder := json.NewEncoder(&page)
		encoder.SetEscapeHTML(false) // Queries contain comparisons.
		encoder.SetIndent("", "  ")
		err := encoder.Encode(d.json())
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], d.name+".json"), page.Bytes(), 0o644) //nolint:gosec // For everybody.
		}
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
}
