// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// BoundedText is a message, cut and cleaned: parts of it come from others.
func BoundedText(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
	return condition.Text(strings.TrimRight(s, ". "), maxMessage)
}

// Cut cuts a text to so many characters.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if characters := []rune(s); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return s
}

// Joined names a few of many.
func Joined(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// MaxID is how long the ID of a cluster may be in a status, in bytes.
const MaxID = 512

// maxMessage is how long the message of a condition may be, in bytes.
const maxMessage = 512
