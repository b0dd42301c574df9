// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"sync"
)

// Bounds of what texts keep, whoever wrote it: a hundred KiB for a cluster.
const (
	maxTexts    = 1024
	maxTextSize = 96
)

// Texts hold once what many records of a cluster say: reasons, and the usual messages. The zero value works.
type Texts struct {
	mu    sync.Mutex
	known map[string]string
}

// share returns a text that is equal to one, and is shared. When there are too many, what was shared until then is
// forgotten, not what follows: a cluster full of texts that nobody repeats costs the same as any other.
func (t *Texts) share(text string) string {
	// A part of a longer text would keep the whole of it in memory.
	if text == "" || len(text) > maxTextSize {
		return strings.Clone(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shared, ok := t.known[text]; ok {
		return shared
	}
	if t.known == nil || len(t.known) >= maxTexts {
		t.known = map[string]string{}
	}
	text = strings.Clone(text)
	t.known[text] = text
	return text
}

// Share makes each of some texts one that is shared.
func Share[S ~string](t *Texts, fields ...*S) {
	for _, field := range fields {
		*field = S(t.share(string(*field)))
	}
}
