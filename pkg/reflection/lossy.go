// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Lossy is an observation that the reflection omits or changes.
type Lossy struct {
	// Object is the kind and name of the reflection, e.g. "AWSManagedMachinePool/prod-blue-0123456789ab". Empty when it is
	// about what is read.
	Object string
	// Field of the object, e.g. "spec.amiType", or of what is read.
	Field string
	// Observed value, cut and cleaned.
	Observed string
	// Default is the value that the object's schema puts there instead. Empty means none.
	Default string
	// Reason in plain English.
	Reason string
}

// String is the entry as one line.
func (l Lossy) String() string {
	out := strings.TrimPrefix(l.Object+" "+l.Field+": "+l.Reason, " ")
	if l.Observed != "" {
		out += fmt.Sprintf(" (observed %q)", l.Observed)
	}
	if l.Default != "" {
		out += fmt.Sprintf("; the default %q is used instead", l.Default)
	}
	return out
}

// notes collects what is lossy: each once, and no more than a bound.
type notes struct {
	entries []Lossy
	seen    map[Lossy]bool
	cut     bool
	// lookedUp, if a test sets it, is called with each field that is looked up, whether it is there or not.
	lookedUp func(field string)
}

func (n *notes) add(l Lossy) {
	if n.seen[l] {
		return
	}
	if len(n.entries) >= maxLossy {
		if !n.cut {
			n.cut = true
			n.entries = append(n.entries, Lossy{Reason: "More could not be represented than what is listed"})
		}
		return
	}
	if n.seen == nil {
		n.seen = map[Lossy]bool{}
	}
	n.seen[l] = true
	n.entries = append(n.entries, l)
}

func (n *notes) addAll(all []Lossy) {
	for _, l := range all {
		n.add(l)
	}
}

// list is sorted, so that the same observations give the same list.
func (n *notes) list() []Lossy {
	return slices.SortedStableFunc(slices.Values(n.entries), func(a, b Lossy) int { return strings.Compare(a.String(), b.String()) })
}

// clean cuts and cleans foreign text for a message.
func clean(s string) string {
	const most = 80
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
