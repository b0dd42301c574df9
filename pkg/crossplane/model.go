// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// LateFields returns the late-initialized fields of a requirement's spec to show: Crossplane's machinery. In a
// composite that is each field of spec.crossplane that one of the specs has.
func (f Form) LateFields(specs ...map[string]any) [][]string {
	var fields [][]string
	if f != FormComposite {
		for _, field := range append([]string{"compositionSelector"}, crossplanesOwn...) {
			fields = append(fields, []string{field})
		}
		return fields
	}
	names := map[string]bool{}
	for _, spec := range specs {
		machinery, _ := spec[CrossplaneField].(map[string]any)
		for field := range machinery {
			names[field] = true
		}
	}
	for _, field := range slices.Sorted(maps.Keys(names)) {
		fields = append(fields, []string{CrossplaneField, field})
	}
	return fields
}

// Form is the form of the Crossplane object for requirements of a published kind. It determines which fields of their
// spec are Crossplane's machinery, and how their connection details are found. It comes from the hub's publication,
// never from a workload cluster. Unknown kinds are treated as claims.
type Form string

const (
	// FormClaim are the claims of an XRD v1, and the requirements of an InfrastructurePublication: the machinery is
	// directly under spec, among the fields of the API's author.
	FormClaim Form = "Claim"

	// FormComposite are the namespaced composite resources of an XRD v2: the machinery is under spec.crossplane, and every
	// other field is the API author's, regardless of its name.
	FormComposite Form = "Composite"
)

// CrossplaneField holds Crossplane's machinery in a namespaced composite resource.
const CrossplaneField = "crossplane"

// neverPushed are the fields of a claim's spec that are never pushed to the hub. resourceRef names a composite
// resource, which is cluster-scoped: Crossplane lets a claim that names an unbound one take it over, delete it and read
// its connection details. In the hub, that would reach out of the tenant's namespace. Crossplane sets the field itself.
var neverPushed = []string{"resourceRef"} //nolint:gochecknoglobals // A constant.

// crossplanesOwn are the fields of a claim's spec that Crossplane fills in or overrides. A user's values are applied
// once, together with everything else; later changes by Crossplane (an enforced composition, an automatic update of the
// revision) are not reverted.
var crossplanesOwn = []string{ //nolint:gochecknoglobals // A constant.
	"resourceRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector",
	"compositionUpdatePolicy", "compositeDeletePolicy",
}

// compositeMachinery are the fields of a composite's spec.crossplane that a user may write and that are pushed to the
// hub. The others are not. Crossplane assumes that it created the composed resources that resourceRefs names: it reads
// each of these objects, regardless of its kind, with its connection details, passes them to the composition's
// functions, and deletes those that no function wants and no one else controls. Crossplane sets the field itself. A
// field added by a later Crossplane is not pushed before it has been reviewed.
var compositeMachinery = []string{ //nolint:gochecknoglobals // A constant.
	"compositionRef", "compositionSelector", "compositionRevisionRef", "compositionRevisionSelector", "compositionUpdatePolicy",
}

// compositeCrossplanesOwn are the fields of a composite's spec.crossplane that Crossplane fills in or overrides, like
// crossplanesOwn.
var compositeCrossplanesOwn = []string{ //nolint:gochecknoglobals // A constant.
	"resourceRefs", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionUpdatePolicy",
}

// Pushable returns the part of a requirement's spec that may be pushed to the hub. It shares nothing with its input.
func (f Form) Pushable(spec map[string]any) map[string]any {
	spec = runtime.DeepCopyJSON(spec)
	if f != FormComposite {
		return without(spec, neverPushed)
	}
	return f.editMachinery(spec, func(field string) bool { return slices.Contains(compositeMachinery, field) })
}

// Users returns the part of a requirement's spec that is the user's alone, so that the hub must match it.
func (f Form) Users(spec map[string]any) map[string]any {
	if f != FormComposite {
		return without(spec, crossplanesOwn)
	}
	return f.editMachinery(spec, func(field string) bool { return !slices.Contains(compositeCrossplanesOwn, field) })
}

// editMachinery returns a composite's spec with only the given machinery fields. Empty machinery, or machinery that is
// not an object, is left out.
func (f Form) editMachinery(spec map[string]any, keep func(string) bool) map[string]any {
	out := maps.Clone(spec)
	machinery, _ := out[CrossplaneField].(map[string]any)
	machinery = maps.Clone(machinery)
	maps.DeleteFunc(machinery, func(field string, _ any) bool { return !keep(field) })
	if len(machinery) == 0 {
		delete(out, CrossplaneField)
		return out
	}
	out[CrossplaneField] = machinery
	return out
}

func without(in map[string]any, keys []string) map[string]any {
	out := maps.Clone(in)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}
