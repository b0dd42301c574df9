// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
)

// A Branch is a line of a tree, and the lines below it. The line is written as is: it must be clean.
type Branch struct {
	Line     string
	Branches []Branch
}

// Write writes the tree.
func (b Branch) Write(w io.Writer) error { return b.write(w, "", "") }

func (b Branch) write(w io.Writer, first, rest string) error {
	if _, err := fmt.Fprintln(w, first+b.Line); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	for i, below := range b.Branches {
		corner, line := "├─ ", "│  "
		if i == len(b.Branches)-1 {
			corner, line = "└─ ", "   "
		}
		if err := below.write(w, rest+corner, rest+line); err != nil {
			return err
		}
	}
	return nil
}
