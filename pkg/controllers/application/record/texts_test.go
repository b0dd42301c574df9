// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestTextsAreHeldOnce(t *testing.T) {
	for _, tc := range []struct {
		name, reason, text string
		once               bool
	}{
		{name: "usual", text: "Healthy", once: true, reason: "Every Application says it."},
		{name: "longest", text: strings.Repeat("x", maxTextSize), once: true, reason: "The bound is the last size that is shared."},
		{name: "long", text: strings.Repeat("x", maxTextSize+1), reason: "Long texts could fill the memory."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			held := &Texts{}
			first, second := held.share(strings.Clone(tc.text)), held.share(strings.Clone(tc.text))
			if first != tc.text || second != tc.text {
				t.Fatalf("want %q, got %q and %q", tc.text, first, second)
			}
			if once := unsafe.StringData(first) == unsafe.StringData(second); once != tc.once {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.once, once)
			}
		})
	}
}

func TestTextsAreBounded(t *testing.T) {
	held := &Texts{}
	for i := range 3 * maxTexts {
		held.share(fmt.Sprint("text ", i))
		if len(held.known) > maxTexts {
			t.Fatalf("want %d texts at most, got %d", maxTexts, len(held.known))
		}
	}
}
