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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// maxReferences is the maximum number of references of an object, as in the schema.
const maxReferences = 128

// maxVariables is the maximum number of variables of a reference, maxSources that of different objects that the
// references of one object can read, and maxFilled that of fields that they can fill.
const (
	maxVariables = 16
	maxSources   = 256
	maxFilled    = 1024
)

// ErrNotOurs is the error of a spec.references that does not hold GenericReferences. Other kinds have a field of that
// name, too.
var ErrNotOurs = errors.New("spec.references does not hold generic references")

// Parse returns the references of an object; none if it has no spec.references. The error is ErrNotOurs if the field
// holds something else.
func Parse(object map[string]any) ([]commonv1alpha1.GenericReference, error) {
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

// Pending returns the indices of the non-optional references whose field has no value. A field that follows its source
// may be outdated, and a dependency has no field: they are pending until the condition ReferencesResolved is True for
// the current object. An object with pending references is not ready for use. It examines the object alone, so it is
// correct whichever controller resolves references, if any. Entries that are not GenericReferences are never pending,
// except that an entry with toFieldPath or when is meant as one: it is pending if it cannot be parsed.
func Pending(object map[string]any) []int {
	refs, err := Parse(object)
	if err != nil {
		return meantAsReferences(object)
	}
	var pending []int
	for i := range refs {
		if refs[i].IsOptional() {
			continue
		}
		waits := refs[i].FollowsSource() || refs[i].IsDependency()
		if !isFilled(object, &refs[i]) || waits && !isResolved(object) {
			pending = append(pending, i)
		}
	}
	return pending
}

// Settled reports whether Resolve has nothing to do for an object, regardless of what else exists: every field that its
// references fill has a value, none of them follows its source, and the condition says that dependencies are there. It
// examines the object alone.
func Settled(object map[string]any) bool {
	refs, err := Parse(object)
	if err != nil {
		return false
	}
	for i := range refs {
		if refs[i].FollowsSource() || !isFilled(object, &refs[i]) || refs[i].IsDependency() && !isResolved(object) {
			return false
		}
	}
	return true
}

// Refused reports whether the object's condition says that its references will not be resolved before a user changes
// something, for the current object.
func Refused(object map[string]any) bool {
	c := currentCondition(object)
	if c["status"] != string(metav1.ConditionFalse) {
		return false
	}
	switch c["reason"] {
	case commonv1alpha1.ReasonInvalidReference, commonv1alpha1.ReasonSecretNotPermitted, commonv1alpha1.ReasonTargetRejected,
		commonv1alpha1.ReasonCycle:
		return true
	}
	return false
}

// isResolved reports whether the object's condition says that its references are resolved, for the current object.
func isResolved(object map[string]any) bool {
	return currentCondition(object)["status"] == string(metav1.ConditionTrue)
}

// currentCondition returns the object's condition about its references; nil if there is none about the current object.
func currentCondition(object map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: object}
	c := condition.Entry(u, commonv1alpha1.ConditionReferencesResolved)
	if generation := u.GetGeneration(); generation == 0 || c["observedGeneration"] != generation {
		return nil
	}
	return c
}

// meantAsReferences returns the indices of entries with toFieldPath or when.
func meantAsReferences(object map[string]any) []int {
	spec, _ := object["spec"].(map[string]any)
	list, _ := spec["references"].([]any)
	var meant []int
	for i := range list {
		entry, _ := list[i].(map[string]any)
		_, fills := entry["toFieldPath"]
		if _, waits := entry["when"]; fills || waits {
			meant = append(meant, i)
		}
	}
	return meant
}

// isFilled reports whether the fields that a reference fills, if any, have a value.
func isFilled(object map[string]any, ref *commonv1alpha1.GenericReference) bool {
	return ref.IsDependency() || hasValue(object, ref.ToFieldPath)
}

// hasValue reports whether all fields that a path leads to have a value.
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

// fill sets a value, or replaces it.
func fill(object map[string]any, target fieldpath.Segments, value any) (changed bool, err error) {
	if have, err := valueAt(object, target); err == nil && reflect.DeepEqual(have, value) {
		return false, nil
	}
	if err := fits(object, target); err != nil {
		return false, err
	}
	paved := fieldpath.Pave(object, fieldpath.WithMaxFieldPathIndex(maxIndex))
	if err := paved.SetValue(target.String(), value); err != nil {
		return false, fmt.Errorf("the value cannot be set: %w", err)
	}
	return true, nil
}

// fits reports whether a path names only list elements that exist, or come next. Otherwise a path of a hundred
// characters would create lists of thousands of empty elements.
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
