// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/managed"
)

// DefinitionFor returns the CustomResourceDefinition that a workload cluster shall have for one of the hub: the same
// names, versions and schemas, without what is about the hub.
//
//   - Conversion is None, and where the hub's definition has a webhook, only the version that travels is served; see
//     conversion.go.
//   - The status of a new object is observedGeneration -1, where the schema lets it be; see observesGeneration.
//   - Lists of objects show the condition AgentSynced, see showsAgentSynced.
//   - Owner references (the XRD is not there), annotations, labels, finalizers and status are the hub's and stay
//     behind. The labels that say whose it is are those of the cluster's hub; see stamped.
func DefinitionFor(hub *unstructured.Unstructured, travels string) *unstructured.Unstructured {
	out, spec := managed.DefinitionLike(hub)
	preservesExplicitly(spec)
	observesGeneration(spec)
	showsAgentSynced(spec)
	if NeedsConversion(hub) {
		onlyVersion(spec, travels)
	}
	return out
}

// observesGeneration adds the field observedGeneration to the status, and sets it to -1 in an object that has no status
// yet. Nobody but Masthead writes the field, and there alone: it is how kstatus finds out that nobody has looked at an
// object, or at its latest change, yet. Otherwise a claim would look ready from its creation until its first status.
//
// It is added only where an object with this field alone is surely valid. A schema that asks for more of a status stays
// as it is.
func observesGeneration(spec map[string]any) {
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		field, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "status")
		status, _ := field.(map[string]any)
		properties, _ := status["properties"].(map[string]any)
		_, hasSubresource, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
		if !hasSubresource || properties == nil || !onlyDescribes(status) || rulesMentionStatus(version) {
			continue
		}
		if _, theirs := properties["observedGeneration"]; !theirs {
			properties["observedGeneration"] = map[string]any{
				"type": "integer", "format": "int64",
				"description": "The generation that this status is about, or -1 before Masthead has looked at the object.",
			}
		}
		observed, _ := properties["observedGeneration"].(map[string]any)
		if observed["type"] == "integer" && observed["minimum"] == nil && observed["enum"] == nil {
			status["default"] = map[string]any{"observedGeneration": int64(-1)}
		}
	}
}

// showsAgentSynced adds a column with the condition AgentSynced to what lists of objects show, before their age:
// without it, a claim that does not reach the hub looks like one with which Crossplane has not begun. A definition that
// has no columns shows the age, and goes on to. A definition that has the column, whoever put it there, stays as it is.
func showsAgentSynced(spec map[string]any) {
	const path = `.status.conditions[?(@.type=='` + reason.ConditionAgentSynced + `')].status`
	age := map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if _, hasSubresource, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status"); !hasSubresource {
			continue
		}
		columns, _ := version["additionalPrinterColumns"].([]any)
		theirs := slices.ContainsFunc(columns, func(c any) bool {
			column, _ := c.(map[string]any)
			return column["name"] == reason.ConditionAgentSynced || column["jsonPath"] == path
		})
		if theirs {
			continue
		}
		if len(columns) == 0 {
			columns = []any{age}
		}
		at := len(columns)
		if last, _ := columns[at-1].(map[string]any); last["jsonPath"] == age["jsonPath"] {
			at--
		}
		version["additionalPrinterColumns"] = slices.Insert(columns, at, any(map[string]any{
			"name": reason.ConditionAgentSynced, "type": "string", "jsonPath": path,
		}))
	}
}

// rulesMentionStatus is whether a rule about the whole object may be about its status.
func rulesMentionStatus(version map[string]any) bool {
	rules, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "x-kubernetes-validations")
	list, _ := rules.([]any)
	for _, r := range list {
		rule, _ := r.(map[string]any)
		if text, _ := rule["rule"].(string); strings.Contains(text, "status") {
			return true
		}
	}
	return false
}

// onlyDescribes is whether the schema of an object says nothing that an object with one of its fields could violate.
func onlyDescribes(schema map[string]any) bool {
	for key := range schema {
		switch key {
		case "type", "description", "title", "properties", "x-kubernetes-preserve-unknown-fields":
		default:
			return false
		}
	}
	return schema["type"] == "object"
}

// Stamped returns a definition with the labels that say which hub put it into a cluster.
func Stamped(crd *unstructured.Unstructured, owner hubidentity.Owner) *unstructured.Unstructured {
	out := crd.DeepCopy()
	out.SetLabels(owner.Stamp(out.GetLabels()))
	return out
}

// IsOurs is whether a definition in a workload cluster was put there by the Masthead of a hub, and nobody has taken it
// over since.
func IsOurs(crd *unstructured.Unstructured, owner hubidentity.Owner) bool {
	return managed.MarksOf(crd).AreOf(owner)
}

// SameDefinition is whether a definition in a workload cluster is what it should be.
func SameDefinition(have, want *unstructured.Unstructured, owner hubidentity.Owner) bool {
	return IsOurs(have, owner) && owner.IsStamped(have) && equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"])
}

// Corrected returns the definition to write over one that is Masthead's and not what it should be.
func Corrected(have, want *unstructured.Unstructured) *unstructured.Unstructured {
	content := runtime.DeepCopyJSON(want.Object)
	return managed.Wanted{Content: content, Name: want.GetName(), Labels: want.GetLabels()}.Over(Opened(have))
}
