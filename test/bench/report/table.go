// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"
)

// Table is a table in Markdown.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
}

// Add adds a row. A row that is shorter than the header is filled up.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.Header))
	copy(row, cells)
	t.Rows = append(t.Rows, row)
}

// String is the table with its title; "" if it has no rows.
func (t *Table) String() string {
	if len(t.Rows) == 0 {
		return ""
	}
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("### " + t.Title + "\n\n")
	}
	line := func(cells []string) {
		escaped := make([]string, 0, len(cells))
		for _, c := range cells {
			escaped = append(escaped, strings.ReplaceAll(c, "|", `\|`))
		}
		b.WriteString("| " + strings.Join(escaped, " | ") + " |\n")
	}
	line(t.Header)
	b.WriteString(strings.Repeat("|---", len(t.Header)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// Milliseconds is a duration for a table.
func Milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

// Mebibytes is a number of bytes for a table.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
