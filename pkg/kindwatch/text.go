// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"strings"
	"unicode"
)

// maxText is how many characters of an error are kept: servers control its text.
const maxText = 512

// boundedText is the beginning of an error, without control characters.
func boundedText(err error) string {
	text, n := strings.Builder{}, 0
	for _, c := range err.Error() {
		if n++; n > maxText {
			return text.String() + "..."
		}
		if unicode.IsControl(c) {
			c = ' '
		}
		text.WriteRune(c)
	}
	return text.String()
}
