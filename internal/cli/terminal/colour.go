// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"

	"k8s.io/cli-runtime/pkg/printers"
)

// Colours are on or off. The zero value is off.
type Colours struct{ on bool }

// ColoursFor returns colours for a writer: on if it is a terminal, and neither NO_COLOR (no-color.org) nor TERM=dumb
// disables them.
func ColoursFor(w io.Writer, getenv func(string) string) Colours {
	return Colours{on: printers.IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Good is for healthy states. The text must be clean, as for the others.
func (c Colours) Good(text string) string { return c.paint("32", text) }

// Bad is for failures.
func (c Colours) Bad(text string) string { return c.paint("31", text) }

// Middling is for progress.
func (c Colours) Middling(text string) string { return c.paint("33", text) }

// Faint is for less important text.
func (c Colours) Faint(text string) string { return c.paint("2", text) }

func (c Colours) paint(code, text string) string {
	if !c.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
