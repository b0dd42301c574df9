// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// publication is a claim kind that the hub's Crossplane offers.
type publication struct {
	// kind is how claims are read and written on both sides.
	kind kindwatch.Kind

	// xrd is the CompositeResourceDefinition that offers it.
	xrd string
}

// crdName is the name of the CustomResourceDefinition of the claims.
func (p publication) crdName() string { return p.kind.GroupResource().String() }

// publicationOf returns the claim kind that a CompositeResourceDefinition offers, if it offers one now.
//
// XRDs are read in apiextensions.crossplane.io/v1, which shows every XRD whatever version it was written in: both
// versions have the same schema and no conversion. Only one whose scope is LegacyCluster can have claimNames, and v1
// defaults to that. Crossplane sets the condition Offered when the claim CRD is established. An XRD that is being deleted
// is not offered any more, although its condition still says so: Crossplane is deleting its claims, and a claim that is
// pushed now would be lost.
func publicationOf(xrd *unstructured.Unstructured) (publication, bool) {
	if xrd.GetDeletionTimestamp() != nil || !conditionTrue(xrd, "Offered") {
		return publication{}, false
	}
	group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(xrd.Object, "spec", "claimNames", "plural")
	kind, _, _ := unstructured.NestedString(xrd.Object, "spec", "claimNames", "kind")
	version := publishedVersion(xrd)
	if group == "" || plural == "" || kind == "" || version == "" {
		return publication{}, false
	}
	return publication{
		kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			Resource:         plural,
		},
		xrd: xrd.GetName(),
	}, true
}

// publishedVersion is the version in which claims travel: the one in which they are stored if it is served, because no
// other can hold more than it, else the first that is served.
func publishedVersion(xrd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	first := ""
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		served, _, _ := unstructured.NestedBool(version, "served")
		referenceable, _, _ := unstructured.NestedBool(version, "referenceable")
		if !served {
			continue
		}
		if referenceable {
			return name
		}
		if first == "" {
			first = name
		}
	}
	return first
}

// conditionTrue is whether the status of an object has a condition of that type that is True.
func conditionTrue(obj *unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c["status"] == "True"
		}
	}
	return false
}

// offers is whether a class offers the claim kinds of an API group to its clusters.
func offers(agent fleetv1alpha1.AgentSpec, group string) bool {
	if agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return false
	}
	return len(agent.APIGroups) == 0 || slices.Contains(agent.APIGroups, group)
}
