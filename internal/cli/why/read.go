// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/health"
)

// Reasons of this package; all others are those of the objects.
const (
	// ReasonNotFound: the object does not exist.
	ReasonNotFound = "NotFound"

	// ReasonKindNotServed: its kind is not served.
	ReasonKindNotServed = "KindNotServed"

	// ReasonNotLookedAt: it could not be read.
	ReasonNotLookedAt = "NotLookedAt"

	// ReasonNobodyLooked: no controller has reported on the object.
	ReasonNobodyLooked = "NobodyLooked"

	// ReasonDeletionWaits: the object is being deleted and waits for finalizers.
	ReasonDeletionWaits = "DeletionWaits"

	// ReasonSwitchedOff: the EnrollmentClass disables a required function.
	ReasonSwitchedOff = "SwitchedOff"

	// ReasonNotEnrolled: the object is not enrolled.
	ReasonNotEnrolled = "NotEnrolled"
)

// findings reads a thing.
func findings(t *Thing) []Finding {
	out := append([]Finding(nil), t.Told...)
	if t.Absent != Present {
		return append(out, absent(t)...)
	}
	if t.Object == nil {
		return out
	}
	switch t.Role {
	case RoleClaim:
		out = append(out, claim(t.Object)...)
	case RoleHub:
		out = append(out, crossplaned(t.Object)...)
	case RoleCluster:
		out = append(out, cluster(t)...)
	case RoleEnrolled:
		out = append(out, enrolled(t)...)
	case RoleClass:
		out = append(out, class(t)...)
	case RolePublisher:
		out = append(out, publisher(t.Object)...)
	case RoleApplication:
		out = append(out, application(t.Object)...)
	case RoleImport:
		out = append(out, imported(t.Object)...)
	case RoleNamespace:
		if t.Object.GetDeletionTimestamp() != nil {
			out = append(out, Finding{Severity: Failed, Reason: "Terminating", Message: "The namespace is being deleted."})
		}
	case RoleObject:
		out = append(out, object(t.Object)...)
	case RoleHolder, RoleKubeconfig, RoleSource:
		// Their existence is enough.
	}
	return append(out, unresolved(t.Object)...)
}

// absent reads a missing thing.
func absent(t *Thing) []Finding {
	message := func(ours string) string {
		if t.Message != "" {
			return t.Message
		}
		return ours
	}
	switch {
	case t.Absent == NotLooked:
		return []Finding{{Severity: Unseen, Reason: ReasonNotLookedAt, Message: message("It could not be read.")}}
	case t.Absent == NotServed:
		// What serves it, or should, is below.
		return []Finding{{Severity: Failed, Derived: true, Reason: ReasonKindNotServed, Message: message("The kind is not served there.")}}
	case t.Role == RoleHolder:
		return nil
	case t.Role == RoleKubeconfig, t.Role == RoleClass, t.Role == RoleEnrolled:
		return []Finding{{Severity: Blocked, Reason: ReasonNotFound, Message: message("It does not exist.")}}
	case t.Role == RoleHub, t.Role == RoleObject && len(t.Told) > 0:
		// Its dependents say why it is missing.
		return []Finding{{Severity: Waiting, Derived: true, Reason: ReasonNotFound, Message: message("It does not exist.")}}
	default:
		return []Finding{{Severity: Failed, Reason: ReasonNotFound, Message: message("It does not exist.")}}
	}
}

// finding returns the finding for a condition that is not True.
func finding(c metav1.Condition, severity Severity, derived bool) Finding {
	reason := c.Reason
	if reason == "" {
		reason = c.Type + "=" + string(c.Status)
	}
	return Finding{Severity: severity, Derived: derived, Reason: reason, Message: c.Message}
}

// crossplaned reads objects of Crossplane and its providers. Synced is about the object's own reconciliation. Ready of
// a composite reports a problem below, and Ready of a managed resource follows from the provider's error.
func crossplaned(obj *unstructured.Unstructured) []Finding {
	var out []Finding
	for _, conditionType := range []string{"Synced", "LastAsyncOperation", "Responsive"} {
		if c, ok := condition.Find(obj, conditionType); ok && c.Status == "False" {
			out = append(out, finding(c, Failed, false))
		}
	}
	if c, ok := condition.Find(obj, "Ready"); ok && c.Status != "True" && len(out) == 0 {
		severity := Failed
		switch c.Reason {
		case "Creating", "Waiting", "Deleting", "":
			severity = Waiting
		}
		out = append(out, finding(c, severity, true))
	}
	if conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); len(conditions) == 0 && obj.GetDeletionTimestamp() == nil {
		out = append(out, Finding{
			Severity: Waiting, Derived: true, Reason: ReasonNobodyLooked,
			Message: "It has no conditions yet. Do Crossplane and the provider of the kind run?",
		})
	}
	return append(out, deleting(obj)...)
}

// deleting reports what a deletion waits for.
func deleting(obj *unstructured.Unstructured) []Finding {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Waiting, Derived: true, Reason: ReasonDeletionWaits,
		Message: "It is being deleted and waits for its finalizers: " + strings.Join(obj.GetFinalizers(), ", ") + ".",
	}}
}

// object reads an object of any other kind, as Applications judge their components.
func object(obj *unstructured.Unstructured) []Finding {
	if _, ok := condition.Find(obj, "Synced"); ok {
		return crossplaned(obj)
	}
	library, err := health.NewLibrary()
	if err != nil {
		return []Finding{{Severity: Unseen, Reason: ReasonNotLookedAt, Message: err.Error()}}
	}
	result := library.New().Assess(obj, false)
	f := Finding{Derived: true, Reason: result.Reason, Message: result.Message}
	switch result.Health {
	case appsv1alpha1.HealthDegraded, appsv1alpha1.HealthMissing:
		f.Severity = Failed
	case appsv1alpha1.HealthProgressing, appsv1alpha1.HealthSuspended:
		f.Severity = Waiting
	default:
		return nil
	}
	return []Finding{f}
}

// unresolved reports unresolved references. Their sources are below.
func unresolved(obj *unstructured.Unstructured) []Finding {
	c, ok := condition.Find(obj, commonv1alpha1.ConditionReferencesResolved)
	if !ok || c.Status == "True" {
		return nil
	}
	return []Finding{finding(c, Failed, c.Reason == commonv1alpha1.ReasonSourceNotFound || c.Reason == commonv1alpha1.ReasonKindNotServed)}
}

func sentence(format string, arguments ...any) string { return fmt.Sprintf(format, arguments...) }
