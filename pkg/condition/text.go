// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes a text that others wrote fit for a status, an event or a log: valid UTF-8 of at most limit characters,
// none of which moves a terminal's cursor or reorders text.
func Text(text string, limit int) string {
	if len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, notGraphic) {
		return strings.TrimSpace(text)
	}
	runes := make([]rune, 0, min(len(text), limit+1))
	for _, c := range text { // Invalid UTF-8 is read as U+FFFD.
		if len(runes) > limit {
			break
		}
		if notGraphic(c) {
			c = ' '
		}
		runes = append(runes, c)
	}
	if len(runes) > limit {
		runes = append(runes[:limit-1], '…')
	}
	return strings.TrimSpace(string(runes))
}

func notGraphic(c rune) bool { return !unicode.IsGraphic(c) }
