// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// LabelSet are the labels of an object. Equal sets, which are common, are stored once: a map per object would be a
// third of its record.
type LabelSet struct {
	// text is each key and each value, in order, each followed by a separator.
	text unique.Handle[string]
}

// separator occurs in no label.
const separator = "\x00"

var _ labels.Labels = LabelSet{}

// NewLabelSet returns the set of the labels in a map. The API server is not trusted: a label containing a separator
// would read as two, and is left out.
func NewLabelSet(m map[string]string) LabelSet {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if strings.Contains(k, separator) || strings.Contains(m[k], separator) {
			continue
		}
		b.WriteString(k + separator + m[k] + separator)
	}
	return LabelSet{unique.Make(b.String())}
}

// Lookup implements labels.Labels.
func (s LabelSet) Lookup(label string) (string, bool) {
	if s == (LabelSet{}) {
		return "", false
	}
	for rest := s.text.Value(); rest != ""; {
		var k, v string
		k, rest, _ = strings.Cut(rest, separator)
		v, rest, _ = strings.Cut(rest, separator)
		if k == label {
			return v, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (s LabelSet) Has(label string) bool {
	_, ok := s.Lookup(label)
	return ok
}

// Get implements labels.Labels.
func (s LabelSet) Get(label string) string {
	v, _ := s.Lookup(label)
	return v
}
