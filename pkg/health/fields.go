// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"
	"math"
	"strconv"
)

// fields reads an object, or a part of one. No value is trusted to have its kind's type: values of another type are
// ignored.
type fields map[string]any

// at returns the value at a path, or nil.
func (f fields) at(path ...string) any {
	var value any = map[string]any(f)
	for _, name := range path {
		parent, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = parent[name]
	}
	return value
}

func (f fields) part(path ...string) fields {
	part, _ := f.at(path...).(map[string]any)
	return part
}

func (f fields) text(path ...string) string {
	text, _ := f.at(path...).(string)
	return text
}

func (f fields) yes(path ...string) bool {
	yes, _ := f.at(path...).(bool)
	return yes
}

// number returns a whole number, and otherwise if there is none.
func (f fields) number(otherwise int64, path ...string) int64 {
	if n, ok := integer(f.at(path...)); ok {
		return n
	}
	return otherwise
}

// parts returns the objects in a list.
func (f fields) parts(path ...string) []fields {
	list, _ := f.at(path...).([]any)
	parts := make([]fields, 0, len(list))
	for _, value := range list {
		if part, ok := value.(map[string]any); ok {
			parts = append(parts, part)
		}
	}
	return parts
}

// integer reads a whole number. Custom resources whose schema does not type a number can hold one with a fraction of
// zero.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int:
		return int64(n), true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	}
	return 0, false
}

// decimal reads a whole number that may be written as a string, as some controllers do with status.observedGeneration.
func decimal(value any) (int64, bool) {
	if text, ok := value.(string); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	return integer(value)
}

// statusCondition is one of status.conditions.
type statusCondition struct{ status, reason, message string }

func (c statusCondition) isTrue() bool { return c.status == "True" }

func (c statusCondition) isFalse() bool { return c.status == "False" }

// condition returns the condition of a type; one without a status if there is none.
func (f fields) condition(kind string) statusCondition {
	return conditionIn(f.parts("status", "conditions"), kind)
}

func conditionIn(conditions []fields, kind string) statusCondition {
	for _, c := range conditions {
		if c.text("type") == kind {
			return statusCondition{status: c.text("status"), reason: c.text("reason"), message: c.text("message")}
		}
	}
	return statusCondition{}
}

func (f fields) hasNoStatus() bool {
	switch status := f.at("status").(type) {
	case nil:
		return true
	case map[string]any:
		return len(status) == 0
	default:
		return false
	}
}

// with returns a copy of an object with one value changed. It shares everything else with the object.
func (f fields) with(name string, value any) fields {
	c := maps.Clone(f)
	c[name] = value
	return c
}
