// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metadataDiffers reports whether the metadata or the spec of a profile has to be written. Labels, annotations and
// owners that others added are ignored.
func metadataDiffers(existing, desired *inventoryv1alpha1.ClusterProfile) bool {
	includes := func(existing, desired labels.Set) bool { return labels.SelectorFromSet(desired).Matches(existing) }
	if !includes(existing.Labels, desired.Labels) || !includes(existing.Annotations, desired.Annotations) {
		return true
	}
	for _, o := range desired.OwnerReferences {
		if !slices.ContainsFunc(existing.OwnerReferences, func(e metav1.OwnerReference) bool {
			return equality.Semantic.DeepEqual(e, o)
		}) {
			return true
		}
	}
	return !equality.Semantic.DeepEqual(existing.Spec, desired.Spec)
}

// statusDiffers reports whether the status of a profile has to be written. Conditions, properties and access providers
// of other writers are ignored; a property with our prefix that is not desired must be removed.
func statusDiffers(existing *inventoryv1alpha1.ClusterProfile, desired inventoryv1alpha1.ClusterProfileStatus) bool {
	if existing.Status.Version != desired.Version || accessDiffers(existing.Status.AccessProviders, desired.AccessProviders) {
		return true
	}
	for _, c := range desired.Conditions {
		if !slices.ContainsFunc(existing.Status.Conditions, func(e metav1.Condition) bool {
			return equality.Semantic.DeepEqual(e, c)
		}) {
			return true
		}
	}
	return !equality.Semantic.DeepEqual(ourProperties(existing.Status.Properties), ourProperties(desired.Properties))
}

func ourProperties(properties []inventoryv1alpha1.Property) map[string]inventoryv1alpha1.Property {
	ours := map[string]inventoryv1alpha1.Property{}
	for _, p := range properties {
		if strings.HasPrefix(p.Name, "fleet.masthead.dev/") {
			ours[p.Name] = p
		}
	}
	return ours
}

// applyMetadata is the apply configuration of a profile's metadata and spec. The cluster inventory API has none, and
// its types cannot stand in for them: they would claim empty fields.
//
// With a UID, the API server refuses the request with a conflict if the object was replaced or is gone.
func applyMetadata(desired *inventoryv1alpha1.ClusterProfile, uid types.UID) *unstructured.Unstructured {
	owners := make([]any, 0, len(desired.OwnerReferences))
	for _, o := range desired.OwnerReferences {
		owners = append(owners, map[string]any{
			"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID),
		})
	}
	u := applyTo(client.ObjectKeyFromObject(desired))
	if uid != "" {
		u.SetUID(uid)
	}
	u.SetLabels(desired.Labels)
	u.SetAnnotations(desired.Annotations)
	u.Object["metadata"].(map[string]any)["ownerReferences"] = owners
	u.Object["spec"] = map[string]any{
		"displayName":    desired.Spec.DisplayName,
		"clusterManager": map[string]any{"name": desired.Spec.ClusterManager.Name},
	}
	return u
}

// applyStatus is the apply configuration of a profile's status, for the version that was read: its times derive from
// that version, and would be wrong for another one.
func applyStatus(
	at types.NamespacedName, uid types.UID, version string, status inventoryv1alpha1.ClusterProfileStatus,
) *unstructured.Unstructured {
	properties := make([]any, 0, len(status.Properties))
	for _, p := range status.Properties {
		properties = append(properties, map[string]any{
			"name": p.Name, "value": p.Value, "lastObservedTime": formatTime(p.LastObservedTime),
		})
	}
	applied := map[string]any{"conditions": applyConditions(status.Conditions), "properties": properties}
	if status.Version.Kubernetes != "" {
		applied["version"] = map[string]any{"kubernetes": status.Version.Kubernetes}
	}
	if access := applyAccess(status.AccessProviders); len(access) > 0 {
		applied["accessProviders"] = access
	}
	u := applyTo(at)
	u.SetUID(uid)
	u.SetResourceVersion(version)
	u.Object["status"] = applied
	return u
}

func applyConditions(conditions []metav1.Condition) []any {
	applied := make([]any, 0, len(conditions))
	for _, c := range conditions {
		applied = append(applied, map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"observedGeneration": c.ObservedGeneration, "lastTransitionTime": formatTime(c.LastTransitionTime),
		})
	}
	return applied
}

func applyTo(at types.NamespacedName) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": inventoryv1alpha1.GroupVersion.String(),
		"kind":       "ClusterProfile",
		"metadata":   map[string]any{"namespace": at.Namespace, "name": at.Name},
	}}
}

func formatTime(t metav1.Time) string {
	return t.UTC().Format(time.RFC3339)
}
