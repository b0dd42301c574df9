// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// block is a block of status.atProvider. A provider writes a nested block as an object or as a list of one, by the
// version and the group of the managed resource: it is read by its shape. A value of another shape is reported and not
// read.
type block struct {
	paved *fieldpath.Paved
	where string
	notes *notes
	// schema is that of the installed provider. Nil means that it is not known.
	schema *apiextensionsv1.JSONSchemaProps
}

// atProvider is what a provider observed. False means that it has not observed anything yet, or that the resource is
// gone. Fields that the schema of its kind lacks are reported, if the schema is known.
func atProvider(mr *unstructured.Unstructured, served Schemas, where string, n *notes) (block, bool) {
	if mr == nil || IsGone(mr) {
		return block{}, false
	}
	value, err := fieldpath.Pave(mr.Object).GetValue("status.atProvider")
	if err != nil {
		return block{}, false
	}
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		return block{}, false
	}
	kind := served[mr.GroupVersionKind().GroupKind()].JSONSchemaProps
	return block{paved: fieldpath.Pave(object), where: where, notes: n, schema: at(kind, []string{"status", "atProvider"})}, true
}

// optional is the block without its schema: fields that it lacks are not reported.
func (b block) optional() block {
	b.schema = nil
	return b
}

// renamed is the name of a field that newer providers renamed: the one that has a value, else the one in the schema.
func (b block) renamed(newer, older string) string {
	value, _ := b.value(newer)
	if _, isOld := b.value(older); (value == nil || value == "") && (isOld || b.lacks(newer) && !b.lacks(older)) {
		return older
	}
	return newer
}

// lacks reports whether the installed provider cannot observe the field.
func (b block) lacks(field string) bool {
	if b.schema == nil || b.schema.XPreserveUnknownFields != nil || b.schema.AdditionalProperties != nil {
		return false
	}
	_, found := b.schema.Properties[field]
	return !found
}

func (b block) value(field string) (any, bool) {
	if b.paved == nil {
		return nil, false
	}
	value, err := b.paved.GetValue(field)
	return value, err == nil && value != nil
}

// get is the value of a field. One that the installed provider lacks is reported, once for all objects of a kind.
func (b block) get(field string) (any, bool) {
	if b.notes.lookedUp != nil {
		b.notes.lookedUp(b.where + "." + field)
	}
	value, found := b.value(field)
	if !found && b.lacks(field) {
		object, path, _ := strings.Cut(b.where+"."+field, ".")
		kind, _, _ := strings.Cut(object, "/")
		b.notes.add(Lossy{Field: kind + "." + path, Reason: "The installed provider does not observe the field"})
	}
	return value, found
}

// nested is an empty block of the name.
func (b block) nested(field string) block {
	s := at(b.schema, []string{field})
	if of := items(s); of != nil {
		s = of
	}
	return block{where: b.where + "." + field, notes: b.notes, schema: s}
}

func (b block) note(field, observed, reason string) {
	b.notes.add(Lossy{Field: strings.TrimPrefix(b.where+"."+field, "."), Observed: clean(observed), Reason: reason})
}

// block is the nested block of the name. Of a list it is the first: providers write lists of one there.
func (b block) block(field string) block {
	if all := b.blocks(field, 1); len(all) > 0 {
		return all[0]
	}
	return b.nested(field)
}

// list is the list of the name, of which so many items are read at most. What is no list is a list of one.
func (b block) list(field string, most int) []any {
	value, found := b.get(field)
	if !found {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return []any{value}
	}
	if len(list) > most {
		b.note(field, strconv.Itoa(len(list)), fmt.Sprintf("Only the first %d of the list are read", most))
		list = list[:most]
	}
	return list
}

// blocks are the nested blocks of the name, at most that many.
func (b block) blocks(field string, most int) []block {
	var out []block
	nested := b.nested(field)
	for _, item := range b.list(field, most) {
		if object, ok := item.(map[string]any); ok {
			nested.paved = fieldpath.Pave(object)
			out = append(out, nested)
		} else if item != nil {
			b.note(field, "", "The value is not an object")
		}
	}
	return out
}

// text is a string of printable characters. What is not, or is longer than a bound, is reported and read as "".
func (b block) text(field string) string {
	value, found := b.get(field)
	if !found {
		return ""
	}
	return b.fieldText(field, value)
}

func (b block) fieldText(field string, value any) string {
	s, ok := value.(string)
	switch {
	case !ok:
		b.note(field, "", "The value is not a string")
		return ""
	case len(s) > maxText || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		b.note(field, s, "The text is too long or has control characters")
		return ""
	}
	return s
}

// time is a time to the second, in one of the formats of AWS's providers; zero if there is none.
func (b block) time(field string) time.Time {
	text := b.text(field)
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05.999999999 -0700 MST"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}

// texts are the strings of a list, or the one string.
func (b block) texts(field string, most int) []string {
	var out []string
	for _, item := range b.list(field, most) {
		if s := b.fieldText(field, item); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// pairs are the strings of an object.
func (b block) pairs(field string, most int) map[string]string {
	value, found := b.get(field)
	if !found {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		b.note(field, "", "The value is not an object")
		return nil
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if len(out) == most {
			b.note(field, strconv.Itoa(len(object)), fmt.Sprintf("Only the first %d entries are read", most))
			break
		}
		if s, ok := object[key].(string); ok && len(key) <= maxText && len(s) <= maxText && utf8.ValidString(key) && utf8.ValidString(s) {
			out[key] = s
		} else {
			b.note(field, key, "The entry is not a short string")
		}
	}
	return out
}

// flag is a truth value, or nil where there is none.
func (b block) flag(field string) *bool {
	value, found := b.get(field)
	if !found {
		return nil
	}
	v, ok := value.(bool)
	if !ok {
		b.note(field, scalar(value), "The value is not true or false")
		return nil
	}
	return &v
}

func (b block) is(field string) bool {
	v := b.flag(field)
	return v != nil && *v
}

// number is a whole number from 0 to the largest of 32 bits, or nil where there is none. Providers declare numbers, so
// a decoder may give a float64 where it was written as 3.0.
func (b block) number(field string) *int32 {
	value, found := b.get(field)
	if !found {
		return nil
	}
	var v int64
	switch n := value.(type) {
	case int64:
		v = n
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
			v = -1
		} else {
			v = int64(n)
		}
	default:
		v = -1
	}
	if v < 0 || v > math.MaxInt32 {
		b.note(field, scalar(value), "The value is not a whole number in range")
		return nil
	}
	out := int32(v)
	return &out
}

// scalar is a value for a message: nothing that nests.
func scalar(value any) string {
	switch value.(type) {
	case string, bool, int64, float64:
		return fmt.Sprint(value)
	default:
		return ""
	}
}
