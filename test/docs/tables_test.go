// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"
)

// TestTablesHaveAHeader finds rows that are shown as text, because a blank line separates them from their table.
func TestTablesHaveAHeader(t *testing.T) {
	for page, text := range files(t, ".md") {
		before, header := "", ""
		for line := range strings.Lines(withoutCode(text)) {
			switch {
			case header != "" && !strings.HasPrefix(line, "|-"):
				t.Errorf("%s: no table begins with %.80q", page, header)
			case header == "" && strings.HasPrefix(line, "|") && !strings.HasPrefix(before, "|"):
				before, header = line, line
				continue
			}
			before, header = line, ""
		}
	}
}
