// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// A Table has a heading for each column. Empty cells are shown as in kubectl.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Write writes the table.
func (t Table) Write(w io.Writer) error {
	tabs := printers.GetNewTabWriter(w)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = Clean(cell); cells[i] == "" {
				cells[i] = "<none>"
			}
		}
		if _, err := fmt.Fprintln(tabs, strings.Join(cells, "\t")); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
	}
	if err := tabs.Flush(); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}
