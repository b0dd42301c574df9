// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// A definition that is no longer offered is deleted when it has no objects. Deleting a definition deletes its objects,
// and the API has no precondition on there being none, so an object created meanwhile must not be lost. So the
// definition is closed first: each version gets a rule that rejects every object. After a grace period, in which every
// API server of the cluster has observed the rule, a live list without objects proves that there will be none, and the
// definition is deleted on condition that it is still the closed one. If there is an object, the definition is opened
// again and stays. It is also opened if its cluster leaves or is left alone meanwhile: nothing else would remove or
// open it.

// WithdrawnAnnotation is set on a closed definition in a workload cluster, and says since when.
const WithdrawnAnnotation = "agent.masthead.dev/withdrawn-at"

// WithdrawnMessage is the error for creating an object of a closed kind. It also marks our rule.
const WithdrawnMessage = "the hub does not offer this kind to the cluster any more, and its definition is about to be removed"

// ClosedSince reports whether a definition is closed, and since when. The annotation alone does not count.
func ClosedSince(crd *unstructured.Unstructured) (time.Time, bool) {
	since, err := time.Parse(time.RFC3339, crd.GetAnnotations()[WithdrawnAnnotation])
	if err != nil {
		return time.Time{}, false
	}
	versions := crossplane.Versions(crd)
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

// ClosedDefinition returns a definition that rejects every object. Existing objects can still be read.
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

// Opened returns a definition without what ClosedDefinition added.
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
