// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Short":       {"What fits stays.", "héllo", "héllo"},
		"Exact":       {"The limit is included.", "éééééééé", "éééééééé"},
		"Long":        {"Characters are counted, not bytes, and none is split.", "ééééééééé", "ééééééé…"},
		"InvalidUTF8": {"The API server refuses what is not UTF-8.", "a\xffb", "a\ufffdb"},
		"Control":     {"An escape sequence without its beginning is text.", "a\x1b[2J\nb", "a [2J b"},
		"Bidi":        {"Overrides reorder what is beside them.", "c\u202ed", "c d"},
		"Space":       {"Nothing is hidden at an end.", " a\x00", "a"},
		"Empty":       {"Nothing stays nothing.", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.text, 8); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[2Jb\nc\u202ed", 8)
	f.Add(strings.Repeat("ü", 1000), 256)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 1 + min(max(limit, 0), 1024)
		got := Text(text, limit)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > limit || strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsGraphic(c) }) {
			t.Errorf("Text(%q, %d) is %q", text, limit, got)
		}
		if again := Text(got, limit); again != got {
			t.Errorf("Text(%q, %d) is %q, and that again %q", text, limit, got, again)
		}
	})
}
