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
		for _, field := range slices.Sorted(maps.Keys(machinery)) {
			if machinery[field].claims {
				fields = append(fields, []string{field})
			}
		}
		return fields
	}
	names := map[string]bool{}
	for _, spec := range specs {
		nested, _ := spec[CrossplaneField].(map[string]any)
		for field := range nested {
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

// machinery are the fields of Crossplane's machinery: directly under the spec of a claim and of the composite that
// Crossplane makes of it, under spec.crossplane in a namespaced composite.
//
// Those that no user may write name objects of the hub, and are never pushed. Crossplane sets them itself.
//
//   - resourceRef: Crossplane lets a claim that names an unbound composite, which is cluster-scoped, take it over,
//     delete it and read its connection details.
//   - resourceRefs: Crossplane assumes that it created these objects. It reads each of them, regardless of its kind,
//     with its connection details, passes them to the composition's functions, and deletes those that no function wants
//     and no one else controls.
//   - claimRef, before Crossplane 0.13 requirementRef: the claim to which a composite belongs.
//   - environmentConfigRefs, up to Crossplane 1.17: what a composition reads.
//
// A claim has only the first one. But Crossplane copies the others from a claim to its composite if the XRD lets claims
// have unknown fields, in every release up to 2.3.
var machinery = map[string]use{ //nolint:gochecknoglobals // A constant.
	"compositionRef":              {users: true, crossplanes: true, claims: true},
	"compositionSelector":         {users: true, claims: true},
	"compositionRevisionRef":      {users: true, crossplanes: true, claims: true},
	"compositionRevisionSelector": {users: true, crossplanes: true, claims: true},
	"compositionUpdatePolicy":     {users: true, crossplanes: true, claims: true},
	"compositeDeletePolicy":       {users: true, crossplanes: true, claims: true},
	"resourceRef":                 {crossplanes: true, claims: true},
	"resourceRefs":                {crossplanes: true},
	"claimRef":                    {},
	"requirementRef":              {},
	"environmentConfigRefs":       {},
}

// use is who uses a field of Crossplane's machinery.
type use struct {
	// users may write it; what they write is pushed.
	users bool

	// crossplanes: Crossplane fills it in or overrides it. A user's value is applied once, together with everything else;
	// later changes by Crossplane (an enforced composition, an automatic update of the revision) are not reverted.
	crossplanes bool

	// claims have it.
	claims bool
}

// Pushable returns the part of a requirement's spec that may be pushed to the hub. It shares nothing with its input.
//
// A claim's other fields are its API author's, those of an object called crossplane, too; but none that Crossplane
// could take for its own is pushed there either. A composite's machinery is apart: a field that a later Crossplane adds
// is not pushed before it has been reviewed.
func (f Form) Pushable(spec map[string]any) map[string]any {
	spec = runtime.DeepCopyJSON(spec)
	if f == FormComposite {
		return editMachinery(spec, func(field string) bool { return machinery[field].users })
	}
	names := func(field string, _ any) bool {
		u, known := machinery[field]
		return known && !u.users
	}
	nested, _ := spec[CrossplaneField].(map[string]any)
	maps.DeleteFunc(spec, names)
	maps.DeleteFunc(nested, names)
	return spec
}

// Users returns the part of a requirement's spec that is the user's alone, so that the hub must match it.
func (f Form) Users(spec map[string]any) map[string]any {
	if f == FormComposite {
		return editMachinery(spec, func(field string) bool { return !machinery[field].crossplanes })
	}
	out := maps.Clone(spec)
	maps.DeleteFunc(out, func(field string, _ any) bool { return machinery[field].crossplanes })
	return out
}

// editMachinery returns a composite's spec with only the given machinery fields. Empty machinery, or machinery that is
// not an object, is left out.
func editMachinery(spec map[string]any, keep func(string) bool) map[string]any {
	out := maps.Clone(spec)
	nested, _ := out[CrossplaneField].(map[string]any)
	nested = maps.Clone(nested)
	maps.DeleteFunc(nested, func(field string, _ any) bool { return !keep(field) })
	if len(nested) == 0 {
		delete(out, CrossplaneField)
		return out
	}
	out[CrossplaneField] = nested
	return out
}
