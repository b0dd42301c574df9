// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// A definition that is not offered any more goes when no object of its kind is left. To delete a definition deletes its
// objects, so that one that is created while we look must not be lost: nothing in the API lets a definition be deleted
// on condition that it has no objects. So it is closed first: each version gets a rule that refuses every object. After
// a time in which every API server of the cluster has learnt of that, a live list that shows no object shows that there
// will be none, and the definition is deleted on condition that it is still the one that was closed. If there is an
// object after all, the definition is opened again and stays. So is one whose cluster leaves or is left alone
// meanwhile: nobody would ever remove or open it.

// WithdrawnAnnotation is set on a definition in a workload cluster that is closed, and says since when.
const WithdrawnAnnotation = "agent.masthead.dev/withdrawn-at"

// WithdrawnMessage is what somebody reads who creates an object of a closed kind. It also marks our rule.
const WithdrawnMessage = "the hub does not offer this kind to the cluster any more, and its definition is about to be removed"

// ClosedSince is whether a definition is closed, and since when. One that only bears the annotation is not.
func ClosedSince(crd *unstructured.Unstructured) (time.Time, bool) {
	since, err := time.Parse(time.RFC3339, crd.GetAnnotations()[WithdrawnAnnotation])
	if err != nil {
		return time.Time{}, false
	}
	versions := crossplane.VersionsOf(crd)
	for _, v := range versions {
		if v, ok := v.(map[string]any); !ok || !hasClosingRule(v) {
			return time.Time{}, false
		}
	}
	return since, len(versions) > 0
}

const validationsField = "x-kubernetes-validations"

func hasClosingRule(version map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(version, "schema", "openAPIV3Schema", validationsField)
	return slices.ContainsFunc(rules, isClosingRule)
}

func isClosingRule(rule any) bool {
	r, ok := rule.(map[string]any)
	return ok && r["rule"] == "false" && r["message"] == WithdrawnMessage
}

// ClosedDefinition is a definition that refuses every object. Those that there are can still be read.
func ClosedDefinition(crd *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	out := Opened(crd)
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[WithdrawnAnnotation] = now.UTC().Format(time.RFC3339)
	out.SetAnnotations(annotations)
	editRules(out, func(rules []any) []any {
		return append(rules, map[string]any{"rule": "false", "message": WithdrawnMessage})
	})
	return out
}

// Opened is a definition without what ClosedDefinition added.
func Opened(crd *unstructured.Unstructured) *unstructured.Unstructured {
	out := crd.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, WithdrawnAnnotation)
	out.SetAnnotations(annotations)
	editRules(out, func(rules []any) []any {
		var kept []any
		for _, rule := range rules {
			if !isClosingRule(rule) {
				kept = append(kept, rule)
			}
		}
		return kept
	})
	return out
}

// editRules changes the validation rules of every version of a definition.
func editRules(crd *unstructured.Unstructured, edit func([]any) []any) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		schema, ok, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if !ok {
			continue
		}
		rules, _ := schema[validationsField].([]any)
		if rules = edit(rules); len(rules) == 0 {
			delete(schema, validationsField)
		} else {
			schema[validationsField] = rules
		}
		_ = unstructured.SetNestedMap(version, schema, "schema", "openAPIV3Schema")
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}
