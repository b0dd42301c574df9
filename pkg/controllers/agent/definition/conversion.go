// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/managed"
)

// A conversion webhook of a definition is a Service of the hub, which a workload cluster cannot call. Without it, an
// API server takes an object of one version for one of another by changing its apiVersion, and drops the fields that
// the other does not have. Where the hub has no webhook that is what the API's author chose, and it is the same in both
// clusters. Where it has one, no object must ever be taken for one of another version:
//
//   - The workload cluster serves and stores the one version in which requirements travel, and no other. Somebody who
//     writes another one is told so by the API server; nothing is lost.
//   - When that version changes in the hub while the workload cluster has objects of the old one, the definition is
//     refused.

// NeedsConversion is whether a definition has a conversion webhook.
func NeedsConversion(crd *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// onlyVersion makes one version of a definition's spec the only one that is served, and the one that is stored.
func onlyVersion(spec map[string]any, only string) {
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			is := version["name"] == only
			version["served"], version["storage"] = is, is
		}
	}
}

// StorageVersion is the version in which objects of a definition are stored.
func StorageVersion(crd *unstructured.Unstructured) string {
	for _, v := range crossplane.VersionsOf(crd) {
		version, _ := v.(map[string]any)
		if storage, _ := version["storage"].(bool); storage {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// KeepingStored is a wanted definition with the versions that the hub's does not have any more, and in which objects of
// the workload cluster may still be stored. They are not served. An API server does not let such a version go, and
// whoever removed it from the hub has converted the objects of the hub only.
func KeepingStored(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	ours := crossplane.VersionsOf(want)
	versions := managed.KeepStored(ours, have, func(version map[string]any) { version["served"] = false })
	if len(versions) == len(ours) {
		return want
	}
	out := want.DeepCopy()
	_ = unstructured.SetNestedSlice(out.Object, versions, "spec", "versions")
	return out
}

// preservesExplicitly turns the preserveUnknownFields of a definition from the time of apiextensions.k8s.io/v1beta1,
// which can be read in v1 and not created, into what replaced it.
func preservesExplicitly(spec map[string]any) {
	preserve, _ := spec["preserveUnknownFields"].(bool)
	delete(spec, "preserveUnknownFields")
	if !preserve {
		return
	}
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			_ = unstructured.SetNestedField(version, true, "schema", "openAPIV3Schema", "x-kubernetes-preserve-unknown-fields")
		}
	}
}
