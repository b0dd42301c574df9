// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// maxReferences is how many references an object can have. It is that of the schema.
const maxReferences = 128

// maxVariables is how many variables a reference can have, and maxSources how many different objects the references of
// one object can read.
const (
	maxVariables = 16
	maxSources   = 256
)

// ErrNotOurs is the error of a spec.references that does not hold GenericReferences. Other kinds have a field of that
// name, too.
var ErrNotOurs = errors.New("spec.references does not hold generic references")

// Of returns the references of an object; none if it has no spec.references. The error is ErrNotOurs if there is
// something else in it.
func Of(object map[string]any) ([]commonv1alpha1.GenericReference, error) {
	spec, _ := object["spec"].(map[string]any)
	raw, there := spec["references"]
	if !there || raw == nil {
		return nil, nil
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, ErrNotOurs
	}
	if len(list) > maxReferences {
		return nil, fmt.Errorf("%w: it has more than %d entries", ErrNotOurs, maxReferences)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	var refs []commonv1alpha1.GenericReference
	strict, err := kjson.UnmarshalStrict(data, &refs)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	return refs, nil
}

// Pending returns the indices of the references whose field has no value, other than the optional ones. A field that
// follows its source may have a value of yesterday: it is pending until the condition ReferencesResolved is True for
// the object as it is. An object that has any is not ready to be used. It looks at the object alone, so that it is
// right whoever resolves references, and when nobody does. What is not ours is never pending, but what has toFieldPath
// is meant to be a reference: it is, if it cannot be read as one.
func Pending(object map[string]any) []int {
	refs, err := Of(object)
	if err != nil {
		return meantAsReferences(object)
	}
	var pending []int
	for i := range refs {
		if refs[i].IsOptional() {
			continue
		}
		if !hasValue(object, refs[i].ToFieldPath) || refs[i].FollowsSource() && !isResolved(object) {
			pending = append(pending, i)
		}
	}
	return pending
}

// Settled is whether Resolve has nothing to do for an object, whatever else there is: every field that its references
// fill has a value, and none of them follows its source. It looks at the object alone.
func Settled(object map[string]any) bool {
	refs, err := Of(object)
	if err != nil {
		return false
	}
	for i := range refs {
		if refs[i].FollowsSource() || !hasValue(object, refs[i].ToFieldPath) {
			return false
		}
	}
	return true
}

// isResolved is whether the condition of an object says that its references are resolved, of the object as it is.
func isResolved(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] == commonv1alpha1.ConditionReferencesResolved {
			generation, known := metadata["generation"].(int64)
			return known && c["status"] == string(metav1.ConditionTrue) && c["observedGeneration"] == generation
		}
	}
	return false
}

// meantAsReferences are the indices of what has toFieldPath.
func meantAsReferences(object map[string]any) []int {
	spec, _ := object["spec"].(map[string]any)
	list, _ := spec["references"].([]any)
	var meant []int
	for i := range list {
		entry, _ := list[i].(map[string]any)
		if _, there := entry["toFieldPath"]; there {
			meant = append(meant, i)
		}
	}
	return meant
}

// hasValue is whether all fields have a value to which a path leads.
func hasValue(object map[string]any, path string) bool {
	segments, err := parseTarget(path)
	if err != nil {
		return false
	}
	targets, err := expand(object, segments)
	if err != nil {
		return false
	}
	for _, t := range targets {
		if _, err := valueAt(object, t); err != nil {
			return false
		}
	}
	return true
}

// fill puts a value where there is none, or another one.
func fill(object map[string]any, target fieldpath.Segments, value any) (changed bool, err error) {
	if have, err := valueAt(object, target); err == nil && reflect.DeepEqual(have, value) {
		return false, nil
	}
	if err := fits(object, target); err != nil {
		return false, err
	}
	paved := fieldpath.Pave(object, fieldpath.WithMaxFieldPathIndex(maxIndex))
	if err := paved.SetValue(target.String(), value); err != nil {
		return false, fmt.Errorf("the value cannot be put there: %w", err)
	}
	return true, nil
}

// fits is whether a path names elements only that lists have, or that come next. Else a path of a hundred characters
// would make lists of thousands of elements, all of them empty.
func fits(object map[string]any, target fieldpath.Segments) error {
	var value any = object
	for _, s := range target {
		if s.Type == fieldpath.SegmentIndex {
			list, _ := value.([]any)
			if s.Index > uint(len(list)) {
				return fmt.Errorf("the index %d is beyond the end of the list, which has %d elements", s.Index, len(list))
			}
		}
		next, err := step(value, s)
		if err != nil {
			next = nil
		}
		value = next
	}
	return nil
}
