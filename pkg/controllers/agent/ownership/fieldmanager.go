// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// maxFieldManagerLength is the API server's limit.
const maxFieldManagerLength = 128

// FieldManager returns the field manager of the claims of one cluster. A cluster that takes over another's identifier
// takes over its fields, too. Identifiers are free text: characters that the API server would refuse are replaced, and
// a hash keeps names distinct.
func FieldManager(identifier string) string {
	clean := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, identifier)
	manager := fleetv1alpha1.FieldManager + "-" + clean
	if clean == identifier && len(manager) <= maxFieldManagerLength {
		return manager
	}
	sum := sha256.Sum256([]byte(identifier))
	suffix := "-" + hex.EncodeToString(sum[:8])
	return manager[:min(len(manager), maxFieldManagerLength-len(suffix))] + suffix
}
