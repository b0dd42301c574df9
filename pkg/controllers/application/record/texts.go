// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"sync"
)

// Bounds of the texts kept, regardless of who wrote them: a hundred KiB per cluster.
const (
	maxTexts    = 1024
	maxTextSize = 96
)

// Texts stores texts common to many records of a cluster once: reasons and usual messages. The zero value works.
type Texts struct {
	mu    sync.Mutex
	known map[string]string
}

// share returns the shared copy of a text. When there are too many, all are forgotten and new ones are added: a cluster
// full of unique texts costs the same as any other.
func (t *Texts) share(text string) string {
	// A substring would keep the whole text in memory.
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

// Share replaces each of the texts by its shared copy.
func Share[S ~string](t *Texts, fields ...*S) {
	for _, field := range fields {
		*field = S(t.share(string(*field)))
	}
}
