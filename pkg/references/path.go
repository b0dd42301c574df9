// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Bounds of paths, which users write and which lead through objects of other authors.
const (
	maxPathLength = 1024
	maxSegments   = 64
	maxIndex      = fieldpath.DefaultMaxFieldPathIndex
	maxExpanded   = 256
)

const wildcard = "*"

// errNoValue is the error of a path at which there is no value.
var errNoValue = errors.New("there is no value") //nolint:gochecknoglobals // A constant.

// parsePath parses a path within its bounds.
func parsePath(path string) (fieldpath.Segments, error) {
	if path == "" {
		return nil, errors.New("the path is empty")
	}
	if len(path) > maxPathLength {
		return nil, fmt.Errorf("the path is longer than %d characters", maxPathLength)
	}
	segments, err := fieldpath.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("the path cannot be parsed: %w", err)
	}
	if len(segments) == 0 || len(segments) > maxSegments {
		return nil, fmt.Errorf("the path has %d segments; it can have 1 to %d", len(segments), maxSegments)
	}
	for _, s := range segments {
		if s.Type == fieldpath.SegmentIndex && s.Index > maxIndex {
			return nil, fmt.Errorf("the index %d is larger than %d", s.Index, maxIndex)
		}
	}
	return segments, nil
}

// parseFrom parses the path of the field that a reference reads; that of a dependency may be empty.
func parseFrom(ref *commonv1alpha1.GenericReference, path string) (fieldpath.Segments, error) {
	if path == "" && ref.IsDependency() {
		return nil, nil
	}
	return parsePath(path)
}

// parseTarget parses the path of a field to fill: one in spec, and not in spec.references. References must not write
// anything else of an object (finalizers, owner references, annotations that controllers obey, the status).
func parseTarget(path string) (fieldpath.Segments, error) {
	segments, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if !isOwn(segments) {
		return nil, errors.New("toFieldPath must be a field in spec, and not in spec.references")
	}
	return segments, nil
}

// parseOwn parses the path of a field of the object itself that has a name. Little else is kept of objects.
func parseOwn(path string) (fieldpath.Segments, error) {
	segments, err := parsePath(path)
	if err == nil && path != "metadata.name" && !isOwn(segments) {
		err = errors.New("nameFieldPath must be metadata.name, or a field in spec and not in spec.references")
	}
	return segments, err
}

// isOwn reports whether a path leads to a field in spec, and not in spec.references.
func isOwn(segments fieldpath.Segments) bool {
	inSpec := len(segments) > 1 && segments[0].Type == fieldpath.SegmentField && segments[0].Field == "spec" &&
		segments[1].Type == fieldpath.SegmentField
	return inSpec && segments[1].Field != "references" && segments[1].Field != wildcard
}

// expand replaces the wildcards and choices of a path by an object's elements, in order. A path without any is returned
// as is. It returns errNoValue if there is nothing.
func expand(object map[string]any, segments fieldpath.Segments) ([]fieldpath.Segments, error) {
	e := expansion{segments: segments}
	if err := e.walk(object, nil); err != nil {
		return nil, err
	}
	if len(e.found) == 0 {
		return nil, errNoValue
	}
	return e.found, nil
}

// expansion is fieldpath's expansion of wildcards, bounded, in a defined order, and without formatting in between: a
// key that cannot be written in a path would lead elsewhere when parsed again.
type expansion struct {
	segments fieldpath.Segments
	found    []fieldpath.Segments
}

func (e *expansion) walk(value any, walked fieldpath.Segments) error {
	for i := len(walked); i < len(e.segments); i++ {
		s := e.segments[i]
		if s.Type == fieldpath.SegmentField && s.Field == wildcard {
			return e.branch(value, walked)
		}
		if slices.ContainsFunc(e.segments[i:], func(s fieldpath.Segment) bool { return isWildcard(s) || isChoice(s) }) {
			s, err := chosen(value, s)
			if err != nil {
				return err
			}
			next, err := step(value, s)
			if err != nil {
				return err
			}
			value, walked = next, append(slices.Clone(walked), s)
			continue
		}
		walked = append(slices.Clone(walked), s)
	}
	if len(e.found) >= maxExpanded {
		return fmt.Errorf("the path leads to more than %d fields", maxExpanded)
	}
	if again, err := fieldpath.Parse(walked.String()); err != nil || !slices.Equal(again, walked) {
		return fmt.Errorf("the path leads through a key that cannot be written in a path: %q", condition.Text(walked.String(), maxText))
	}
	e.found = append(e.found, walked)
	return nil
}

// branch continues with each element, or each field in name order.
func (e *expansion) branch(value any, walked fieldpath.Segments) error {
	var steps fieldpath.Segments
	switch v := value.(type) {
	case []any:
		for i := range v {
			if i > maxExpanded {
				break
			}
			steps = append(steps, fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(i)})
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			steps = append(steps, fieldpath.Segment{Type: fieldpath.SegmentField, Field: key})
		}
	case nil:
		return errNoValue
	default:
		return fmt.Errorf("%s is neither a list nor an object", condition.Text(walked.String(), maxText))
	}
	for _, s := range steps {
		next, err := step(value, s)
		if err == nil {
			err = e.walk(next, append(slices.Clone(walked), s))
		}
		// An element may lack a field that others have.
		if err != nil && !errors.Is(err, errNoValue) {
			return err
		}
	}
	return nil
}

func isWildcard(s fieldpath.Segment) bool {
	return s.Type == fieldpath.SegmentField && s.Field == wildcard
}

// isChoice reports whether a segment chooses the element of a list by the value of one of its fields: [type=Ready]. In
// an object it is a field of that name.
func isChoice(s fieldpath.Segment) bool {
	return s.Type == fieldpath.SegmentField && strings.Index(s.Field, "=") > 0
}

// chosen returns the index of the element that a segment chooses, or the segment if it chooses none.
func chosen(value any, s fieldpath.Segment) (fieldpath.Segment, error) {
	list, isList := value.([]any)
	if !isList || !isChoice(s) {
		return s, nil
	}
	name, want, _ := strings.Cut(s.Field, "=")
	found := -1
	for i := range list {
		element, _ := list[i].(map[string]any)
		switch have := element[name].(type) {
		case string, bool, int64:
			if fmt.Sprint(have) != want {
				continue
			}
		default:
			continue
		}
		if found >= 0 {
			return s, fmt.Errorf("more than one element has %s", condition.Text(s.Field, maxText))
		}
		found = i
	}
	if found < 0 {
		return s, errNoValue
	}
	return fieldpath.Segment{Type: fieldpath.SegmentIndex, Index: uint(found)}, nil
}

// readPaths returns the paths of all fields that are read at a path, with wildcards for chosen elements: the fields by
// which they are chosen are compared, so that the choice reveals their values.
func readPaths(path fieldpath.Segments) []fieldpath.Segments {
	plain := slices.Clone(path)
	out := []fieldpath.Segments{plain}
	for i, s := range path {
		if isChoice(s) {
			name, _, _ := strings.Cut(s.Field, "=")
			plain[i].Field = wildcard
			out = append(out, append(slices.Clone(plain[:i+1]), fieldpath.Segment{Type: fieldpath.SegmentField, Field: name}))
		}
	}
	return out
}

func step(value any, s fieldpath.Segment) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, errNoValue
	case []any:
		if s.Type != fieldpath.SegmentIndex {
			return nil, errors.New("the path names a field, but the value is a list")
		}
		if s.Index >= uint(len(v)) {
			return nil, errNoValue
		}
		return v[s.Index], nil
	case map[string]any:
		if s.Type != fieldpath.SegmentField {
			return nil, errors.New("the path has an index, but the value is an object")
		}
		next, ok := v[s.Field]
		if !ok {
			return nil, errNoValue
		}
		return next, nil
	}
	return nil, errors.New("the path leads through a value that is neither an object nor a list")
}

// valueAt returns the value at a path without wildcards; errNoValue if there is none, or null, or the empty text: an
// unset field of a Go type without omitempty has that.
func valueAt(object map[string]any, path fieldpath.Segments) (any, error) {
	value, err := fieldpath.Pave(object).GetValue(path.String())
	switch {
	case fieldpath.IsNotFound(err):
		return nil, errNoValue
	case err != nil:
		return nil, err
	case value == nil, value == "":
		return nil, errNoValue
	}
	return value, nil
}
