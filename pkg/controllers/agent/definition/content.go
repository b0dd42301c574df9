// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
)

// DefinitionFor returns the CustomResourceDefinition that a workload cluster shall have for one of the hub: the same
// names, versions and schemas, without hub-specific content.
//
//   - Conversion is None, and where the hub's definition has a webhook, only the synchronised version is served; see
//     conversion.go.
//   - The status of a new object is observedGeneration -1, where the schema allows it; see observesGeneration.
//   - Lists of objects show the condition AgentSynced, see showsAgentSynced.
//   - Owner references (the XRD is not there), annotations, labels, finalizers and status are the hub's and not copied.
//     The ownership labels are those of the cluster's hub; see stamped.
func DefinitionFor(hub *unstructured.Unstructured, travels string) *unstructured.Unstructured {
	out, spec := install.DefinitionLike(hub)
	preservesExplicitly(spec)
	observesGeneration(spec)
	showsAgentSynced(spec)
	if NeedsConversion(hub) {
		onlyVersion(spec, travels)
	}
	return out
}

// observesGeneration adds the field observedGeneration to the status, and defaults it to -1 in an object without a
// status. Only Masthead writes the field, and only in workload clusters: it shows kstatus that an object, or its latest
// change, has not been reconciled yet. Otherwise a claim would look ready from its creation until its first status.
//
// It is added only where an object with this field alone is surely valid. A schema with further requirements on the
// status is left unchanged.
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

// showsAgentSynced adds a printer column with the condition AgentSynced, before the age: without it, a claim that does
// not reach the hub looks like one that Crossplane has not started on. A definition without columns shows the age, and
// continues to. A definition that already has the column is left unchanged.
func showsAgentSynced(spec map[string]any) {
	const path = `.status.conditions[?(@.type=='` + fleetv1alpha1.ConditionAgentSynced + `')].status`
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
			return column["name"] == fleetv1alpha1.ConditionAgentSynced || column["jsonPath"] == path
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
			"name": fleetv1alpha1.ConditionAgentSynced, "type": "string", "jsonPath": path,
		}))
	}
}

// rulesMentionStatus reports whether a rule about the whole object may be about its status.
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

// onlyDescribes reports whether a schema has no constraint that an object with one of its fields could violate.
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

// Stamped returns a definition with the labels that say which hub installed it in a cluster.
func Stamped(crd *unstructured.Unstructured, owner hubidentity.Owner) *unstructured.Unstructured {
	out := crd.DeepCopy()
	out.SetLabels(owner.Stamp(out.GetLabels()))
	return out
}

// IsOurs reports whether a definition in a workload cluster was installed by a hub's Masthead, and has no other owner
// since.
func IsOurs(crd *unstructured.Unstructured, owner hubidentity.Owner) bool {
	return install.GetMarks(crd).BelongTo(owner)
}

// SameDefinition reports whether a definition in a workload cluster is what it should be.
func SameDefinition(have, want *unstructured.Unstructured, owner hubidentity.Owner) bool {
	return IsOurs(have, owner) && owner.IsStamped(have) && equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"])
}

// Corrected returns the definition to write over one that Masthead owns and that differs from what it should be.
func Corrected(have, want *unstructured.Unstructured) *unstructured.Unstructured {
	content := runtime.DeepCopyJSON(want.Object)
	return install.Wanted{Content: content, Name: want.GetName(), Labels: want.GetLabels()}.Over(Opened(have))
}
