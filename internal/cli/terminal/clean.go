// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sequences are the escape sequences of ECMA-48 and xterm, so that their parameters go with them: CSI, then the strings
// (OSC, DCS, APC, PM, SOS) up to their end, then what has two characters.
//
//nolint:gochecknoglobals // A constant.
var sequences = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
	"|(?:\x1b[\\]PX^_]|[\u009d\u0090\u009f\u009e\u0098])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?" +
	"|\x1b[ -/]*[0-~]")

// Clean makes a text safe for one line of a terminal. Escape sequences are removed; white space of any kind becomes one
// space; other invisible or text-reordering characters are removed; and invalid UTF-8 becomes "?".
func Clean(text string) string {
	if plain(text) {
		return text
	}
	text = sequences.ReplaceAllString(strings.ToValidUTF8(text, "?"), "")
	var b strings.Builder
	space := false
	for _, c := range text {
		switch {
		case unicode.IsSpace(c):
			space = true
		case unicode.IsPrint(c):
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(c)
		}
	}
	return b.String()
}

// plain reports whether Clean would not change a text, as is the case for nearly all.
func plain(text string) bool {
	before := ' '
	for _, c := range text {
		if !unicode.IsPrint(c) || c == utf8.RuneError || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return before != ' ' || text == ""
}
