// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
)

// A conversion webhook of a definition is a Service of the hub, which a workload cluster cannot call. Without it, an
// API server converts an object by changing its apiVersion, and drops the fields that the other version lacks. If the
// hub has no webhook, that is the API author's choice, and the same in both clusters. If it has one, no object may ever
// be converted like that:
//
//   - The workload cluster serves and stores only the version in which requirements are synchronised. The API server
//     rejects other versions; nothing is lost.
//   - When that version changes in the hub while the workload cluster has objects of the old one, the definition is
//     refused, and they are only deleted.

// NeedsConversion reports whether a definition has a conversion webhook.
func NeedsConversion(crd *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// onlyVersion makes one version of a definition's spec the only served one, and the storage version.
func onlyVersion(spec map[string]any, only string) {
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			is := version["name"] == only
			version["served"], version["storage"] = is, is
		}
	}
}

// StorageVersion returns the version in which a definition's objects are stored.
func StorageVersion(crd *unstructured.Unstructured) string {
	for _, v := range crossplane.Versions(crd) {
		version, _ := v.(map[string]any)
		if storage, _ := version["storage"].(bool); storage {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// KeepingStored returns a wanted definition with versions added that the hub's no longer has, and in which the workload
// cluster may still store objects. They are not served. An API server does not allow removing such a version, and its
// removal from the hub only means that the hub's objects were converted.
func KeepingStored(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	ours := crossplane.Versions(want)
	versions := install.KeepStored(ours, have, func(version map[string]any) { version["served"] = false })
	if len(versions) == len(ours) {
		return want
	}
	out := want.DeepCopy()
	_ = unstructured.SetNestedSlice(out.Object, versions, "spec", "versions")
	return out
}

// preservesExplicitly replaces preserveUnknownFields, which dates from apiextensions.k8s.io/v1beta1 and can be read but
// not created in v1, by its successor.
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
