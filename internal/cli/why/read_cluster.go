// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// cluster reads a ClusterProfile. Without a connection nothing works behind it. Refused definitions and unknown kinds
// count only if they concern the question.
func cluster(t *Thing) []Finding {
	c, ok := condition.Find(t.Object, fleetv1alpha1.ConditionConnected)
	switch {
	case !ok:
		return []Finding{{
			Severity: Blocked, Derived: true, Reason: ReasonNobodyLooked,
			Message: "The ClusterProfile has no condition Connected yet. Does the manager run?",
		}}
	case c.Status == "False":
		return []Finding{finding(c, Blocked, explainedBelow(c.Reason))}
	case c.Status == "Unknown":
		return []Finding{finding(c, Blocked, false)}
	}
	var out []Finding
	for _, conditionType := range []string{
		inventoryv1alpha1.ClusterConditionControlPlaneHealthy, fleetv1alpha1.ConditionKindsServed, fleetv1alpha1.ConditionKindsSynced,
		fleetv1alpha1.ConditionWithinLimits,
	} {
		c, ok := condition.Find(t.Object, conditionType)
		if !ok || c.Status != "False" || !concerns(c, t.For) {
			continue
		}
		f := finding(c, Failed, false)
		if why := parseRefusal(c.Message, t.For.Definition); why != "" {
			f.Reason = why
			f.Message = sentence("Masthead could not write the definition %s to the cluster.", t.For.Definition)
		}
		out = append(out, f)
	}
	return out
}

// explainedBelow reports whether the enrolled object, the class or the Secret says more than the reason.
func explainedBelow(reason string) bool {
	switch reason {
	case fleetv1alpha1.ReasonNoCredentials, fleetv1alpha1.ReasonNotReady, fleetv1alpha1.ReasonPaused, fleetv1alpha1.ReasonClassNotFound:
		return true
	}
	return false
}

// concerns reports whether a condition is related to the question.
func concerns(c metav1.Condition, f For) bool {
	switch {
	case f == For{}:
		return true
	case c.Type == fleetv1alpha1.ConditionKindsServed:
		return parseRefusal(c.Message, f.Definition) != ""
	case c.Type == fleetv1alpha1.ConditionKindsSynced:
		return f.Definition != "" && strings.Contains(c.Message, f.Definition)
	}
	return true
}

// parseRefusal finds why a definition was refused in the message of KindsServed, which lists them as "name (reason)".
func parseRefusal(message, definition string) string {
	if definition == "" {
		return ""
	}
	_, list, _ := strings.Cut(message, ": ")
	for entry := range strings.SplitSeq(list, ", ") {
		if rest, ok := strings.CutPrefix(entry, definition+" ("); ok {
			why, _, _ := strings.Cut(rest, ")")
			return why
		}
	}
	return ""
}

// enrolled reads a Cluster of Cluster API, a Secret with a kubeconfig, or a ClusterProfile of another cluster manager.
func enrolled(t *Thing) []Finding {
	var out []Finding
	if _, ok := connection.EnrolledClass(t.Object.GetLabels()); !ok {
		out = append(out, Finding{
			Severity: Blocked, Reason: ReasonNotEnrolled,
			Message: sentence("It is not enrolled: it has no label %s.", fleetv1alpha1.EnrollLabel),
		})
	}
	if t.Object.GetKind() != "Cluster" {
		return out
	}
	paused, _, _ := unstructured.NestedBool(t.Object.Object, "spec", "paused")
	_, annotated := t.Object.GetAnnotations()[clusterv1.PausedAnnotation]
	importer := t.Object.GetAnnotations()[fleetv1alpha1.ImportPausedAnnotation] != ""
	if annotated || paused && !importer {
		out = append(out, Finding{Severity: Blocked, Reason: fleetv1alpha1.ReasonPaused, Message: "The Cluster is paused."})
	}
	initialized, _, _ := unstructured.NestedBool(t.Object.Object, "status", "initialization", "controlPlaneInitialized")
	if initialized {
		return out
	}
	for _, conditionType := range []string{
		clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterAvailableCondition,
	} {
		if c, ok := condition.Find(t.Object, conditionType); ok && c.Status != "True" {
			return append(out, finding(c, Failed, false))
		}
	}
	return out
}

// class reads an EnrollmentClass.
func class(t *Thing) []Finding {
	var out []Finding
	if c, ok := condition.Find(t.Object, fleetv1alpha1.ConditionReady); ok && c.Status == "False" {
		out = append(out, finding(c, Failed, false))
	}
	path := map[Use]string{UseClaims: "agent", UseApplications: "applications", UseReferences: "references"}[t.For.Use]
	if path == "" {
		return out
	}
	mode, _, _ := unstructured.NestedString(t.Object.Object, "spec", path, "mode")
	if mode == "Disabled" {
		out = append(out, Finding{
			Severity: Blocked, Reason: ReasonSwitchedOff,
			Message: sentence("The EnrollmentClass has spec.%s.mode: Disabled, so that Masthead ignores %s in the cluster.", path, t.For.Use),
		})
	}
	return out
}

// publisher reads a CompositeResourceDefinition.
func publisher(obj *unstructured.Unstructured) []Finding {
	if obj.GetDeletionTimestamp() != nil {
		return []Finding{{
			Severity: Failed, Reason: "Terminating", Message: "The definition is being deleted, so its kind is no longer offered.",
		}}
	}
	var out []Finding
	for _, conditionType := range []string{"Established", "Offered"} {
		if c, ok := condition.Find(obj, conditionType); ok && c.Status != "True" {
			out = append(out, finding(c, Failed, false))
		}
	}
	if _, ok := condition.Find(obj, "Established"); !ok {
		out = append(out, Finding{
			Severity: Waiting, Reason: ReasonNobodyLooked, Message: "The definition is not established yet. Does Crossplane run?",
		})
	}
	return out
}
