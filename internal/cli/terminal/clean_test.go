// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Plain":    {reason: "What is plain stays.", in: `The name "sqldb" is taken: ünï-cödé 数据库`, want: `The name "sqldb" is taken: ünï-cödé 数据库`},
		"Colour":   {reason: "Colours could make a failure look well.", in: "\x1b[32mReady\x1b[0m", want: "Ready"},
		"Title":    {reason: "The title of a window is not theirs.", in: "a\x1b]0;owned\x07b", want: "ab"},
		"Link":     {reason: "A link could lead elsewhere than it says.", in: "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", want: "click"},
		"EightBit": {reason: "C1 has the same sequences in one character.", in: "a\u009b31mb\u009d0;x\u009cc", want: "abc"},
		"Unended":  {reason: "A sequence that does not end takes the rest with it.", in: "a\x1b]0;title", want: "a"},
		"Lines":    {reason: "A message is one line; another line could be taken for ours.", in: "a\nb\r\n\tc", want: "a b c"},
		"Return":   {reason: "A return would overwrite the line.", in: "Failed\rReady ", want: "Failed Ready"},
		"Bidi":     {reason: "Overrides reorder what stands beside them.", in: "a\u202eb\u2066c", want: "abc"},
		"Hidden":   {reason: "What has no width hides.", in: "a\u200bb\u00adc", want: "abc"},
		"Broken":   {reason: "What is no UTF-8 is shown as such.", in: "a\xffb", want: "a?b"},
		"Nested":   {reason: "What remains of a sequence is none.", in: "\x1b\x1b[31m[31mx", want: "[31mx"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clean(tc.in); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a  b ", "\x1b[1;31mx", "\x1b]8;;u\x07", "\u009b2J", "\x1b(B", "a\u202e\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := Clean(text)
		if !utf8.ValidString(clean) || strings.ContainsFunc(clean, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("Clean(%q) = %q, which a terminal obeys", text, clean)
		}
		if again := Clean(clean); again != clean {
			t.Errorf("Clean(%q) = %q, and that cleaned again is %q", text, clean, again)
		}
		var table, document, yaml bytes.Buffer
		if err := (Table{Columns: []string{"A"}, Rows: [][]string{{text}}}).Write(&table); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&document, map[string]string{"a": text}); err != nil {
			t.Fatal(err)
		}
		if err := WriteYAML(&yaml, map[string]string{"a": text}); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{table.String(), document.String(), yaml.String()} {
			if strings.ContainsFunc(out, obeyed) {
				t.Errorf("%q is written as %q, which a terminal obeys", text, out)
			}
		}
		if strings.Count(table.String(), "\n") != 2 {
			t.Errorf("%q breaks the line of a table: %q", text, table.String())
		}
		var back map[string]string
		if err := json.Unmarshal(document.Bytes(), &back); err != nil || back["a"] != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Errorf("%q comes back from JSON as %q: %v", text, back["a"], err)
		}
	})
}

func TestColoursOnlyOnATerminal(t *testing.T) {
	none := func(string) string { return "" }
	if got := ColoursFor(&bytes.Buffer{}, none).Bad("x"); got != "x" {
		t.Errorf("what is no terminal gets no colours, got %q", got)
	}
	if got := (Colours{on: true}).Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("a terminal gets colours, got %q", got)
	}
}
