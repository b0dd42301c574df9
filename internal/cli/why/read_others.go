// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// application reads an Application. Its components are below.
func application(obj *unstructured.Unstructured) []Finding {
	c, ok := condition.Find(obj, appsv1alpha1.ConditionReady)
	seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	switch {
	case !ok, seen != obj.GetGeneration():
		return []Finding{{
			Severity: Waiting, Derived: true, Reason: ReasonNobodyLooked, Message: "Masthead has not observed the latest change of the Application yet.",
		}}
	case c.Status == "True":
		return nil
	}
	severity, derived := Failed, false
	switch c.Reason {
	case appsv1alpha1.ReasonComponentsDegraded, appsv1alpha1.ReasonComponentsMissing, appsv1alpha1.ReasonComponentsUnknown,
		appsv1alpha1.ReasonComponentsNotWatched, appsv1alpha1.ReasonDependenciesMissing, appsv1alpha1.ReasonHealthCheckNotReady:
		derived = true
	case appsv1alpha1.ReasonComponentsProgressing, appsv1alpha1.ReasonComponentsSuspended, appsv1alpha1.ReasonSyncing,
		appsv1alpha1.ReasonHealthCheckStarting, appsv1alpha1.ReasonNoComponents:
		severity, derived = Waiting, true
	}
	return []Finding{finding(c, severity, derived)}
}

// ComponentFinding returns an Application's finding about a component. A degraded object explains itself better.
func ComponentFinding(health appsv1alpha1.Health, reason, message string) Finding {
	f := Finding{Reason: reason, Message: message}
	switch health {
	case appsv1alpha1.HealthHealthy:
		return Finding{}
	case appsv1alpha1.HealthMissing:
		f.Severity = Failed
	case appsv1alpha1.HealthDegraded:
		f.Severity, f.Derived = Failed, true
	case appsv1alpha1.HealthProgressing, appsv1alpha1.HealthSuspended:
		f.Severity, f.Derived = Waiting, true
	default:
		f.Severity, f.Derived = Waiting, true
		switch reason {
		case appsv1alpha1.ReasonKindForbidden, appsv1alpha1.ReasonKindNotServed, appsv1alpha1.ReasonKindTooLarge, appsv1alpha1.ReasonKindStale,
			appsv1alpha1.ReasonClusterScoped, appsv1alpha1.ReasonNotAllowed, appsv1alpha1.ReasonTooManyDiscovered, appsv1alpha1.ReasonNoInventory,
			appsv1alpha1.ReasonNotEnrolled:
			f.Severity, f.Derived = Failed, false
		}
	}
	if f.Reason == "" {
		f.Reason = string(health)
	}
	return f
}

// imported reads a ClusterImport. The managed resources that it waits for are below.
func imported(obj *unstructured.Unstructured) []Finding {
	if managed, ok := condition.Find(obj, fleetv1alpha1.ConditionAlreadyManaged); ok && managed.Status == "True" {
		return []Finding{finding(managed, Blocked, false)}
	}
	ready, ok := condition.Find(obj, fleetv1alpha1.ConditionReady)
	switch {
	case !ok:
		return []Finding{{
			Severity: Failed, Reason: ReasonNobodyLooked,
			Message: "This ClusterImport has not been reconciled. Does the manager run? With --imports=false it reconciles none.",
		}}
	case ready.Status == "True":
		return nil
	}
	switch ready.Reason {
	case fleetv1alpha1.ReasonProviderError:
		return []Finding{finding(ready, Failed, true)}
	case fleetv1alpha1.ReasonWaitingForProvider, fleetv1alpha1.ReasonUnimporting:
		return []Finding{finding(ready, Waiting, true)}
	}
	return []Finding{finding(ready, Failed, false)}
}
