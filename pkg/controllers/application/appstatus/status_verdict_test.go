// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/verdict"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestVerdictsOnApplications(t *testing.T) {
	const crd = "config/crd/workload/apps.masthead.dev_applications.yaml"
	kind := appsv1alpha1.GroupVersion.WithKind("Application")
	healthy := func(name string) ComponentView { return component(name, appsv1alpha1.HealthHealthy) }
	app := func(o Observation) *unstructured.Unstructured {
		out := o.Application.DeepCopy()
		out.Status = Build(o, statusTime(0))
		return verdict.Object(t, kind, out)
	}
	edited := app(observed(with(healthy("db"))))
	edited.SetGeneration(9)
	ended := app(observed(with(healthy("db"))))
	ended.SetDeletionTimestamp(&metav1.Time{Time: statusTime(1).Time})
	mended := observed(with(healthy("db")))
	mended.Application.Status = Build(observed(with(component("db", appsv1alpha1.HealthDegraded))), statusTime(0))
	upgraded := observed(with(healthy("db")))
	upgraded.Application.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: "Unknown", Reason: "NoHealthCheck", Message: "The Application has no health check.",
	}}
	check := func(status corev1.ConditionStatus, reason string) func(*Observation) {
		if reason == "" {
			return checked(status, nil)
		}
		return checked(status, &condition.Error{Reason: reason, Message: "It is so."})
	}
	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created": {
			Reason: "Masthead has not processed it yet.", Object: verdict.Created(t, crd, app(observed())), Want: verdict.InProgress,
		},
		"Edited": {Reason: "Masthead has not processed the change yet.", Object: edited, Want: verdict.InProgress},
		"Ended":  {Reason: "It goes.", Object: ended, Want: verdict.Terminating},
		"Healthy": {
			Reason: "Everything is installed and healthy, and no health check is requested.",
			Object: app(observed(with(healthy("db")))), Want: verdict.Current,
		},
		"Upgraded": {Reason: "What an older Masthead said is replaced.", Object: app(upgraded), Want: verdict.Current},
		"Mended":   {Reason: "What had failed is forgotten.", Object: app(mended), Want: verdict.Current},
		"NoComponents": {
			Reason: "It names nothing, so there is nothing to be ready.", Object: app(observed()), Want: verdict.InProgress,
		},
		"DependenciesOnly": {
			Reason: "All that it names is installed.", Want: verdict.Current,
			Object: app(observed(dependingOn(DependencyView{name: "mysql", status: &appsv1alpha1.ApplicationStatus{}}))),
		},
		"HealthCheckOnly": {Reason: "All that it asks for passes.", Object: app(observed(check("True", ""))), Want: verdict.Current},
		"AllIgnored": {
			Reason: "Its author has the health of its components ignored.", Want: verdict.Current,
			Object: app(observed(with(component("db", appsv1alpha1.HealthDegraded, ignored)))),
		},
		"Missing": {
			Reason: "It may be created next.", Object: app(observed(with(healthy("db"), component("web", "", missing)))), Want: verdict.InProgress,
		},
		"LabelsDoNotMatch": {
			Reason: "It may be labelled next.", Object: app(observed(with(component("web", appsv1alpha1.HealthHealthy, unmatched)))),
			Want: verdict.InProgress,
		},
		"DependencyMissing": {
			Reason: "It may be created next.", Object: app(observed(with(healthy("db")), dependingOn(DependencyView{name: "mysql"}))),
			Want: verdict.InProgress,
		},
		"DependencyNotSeen": {
			Reason: "Whether the dependency is installed is unknown.", Want: verdict.InProgress,
			Object: app(observed(with(healthy("db")), dependingOn(DependencyView{name: "mysql", unseen: true}))),
		},
		"Progressing": {
			Reason: "It is on its way.", Object: app(observed(with(component("db", appsv1alpha1.HealthProgressing)))), Want: verdict.InProgress,
		},
		"Terminating": {
			Reason: "It is on its way out.", Object: app(observed(with(component("db", appsv1alpha1.HealthHealthy, deleting)))),
			Want: verdict.InProgress,
		},
		"Finished": {
			Reason: "Its Job has done what it is for, and is gone.", Want: verdict.Current,
			Object: app(observed(with(healthy("db"), component("migrate", appsv1alpha1.HealthHealthy, asFinishedJob)))),
		},
		"Unknown": {
			Reason: "Its health is unknown.", Object: app(observed(with(component("db", appsv1alpha1.HealthUnknown)))), Want: verdict.InProgress,
		},
		"Suspended": {
			Reason: "Its author has paused it.", Object: app(observed(with(component("db", appsv1alpha1.HealthSuspended)))),
			Want: verdict.Suspended,
		},
		"Degraded": {
			Reason: "It does not mend by itself.", Object: app(observed(with(healthy("a"), component("db", appsv1alpha1.HealthDegraded)))),
			Want: verdict.Failed,
		},
		"DegradedAndMissing": {
			Reason: "That something is on its way does not mend what has failed.", Want: verdict.Failed,
			Object: app(observed(with(component("web", "", missing), component("db", appsv1alpha1.HealthDegraded)))),
		},
		"Discovered": {
			Reason: "What was found is healthy.", Want: verdict.Current, Object: app(observed(with(foundElsewhere("db", appsv1alpha1.HealthHealthy)))),
		},
		"DiscoveredDegraded": {
			Reason: "What was found has failed.", Want: verdict.Failed,
			Object: app(observed(with(healthy("web"), foundElsewhere("db", appsv1alpha1.HealthDegraded)))),
		},
		"NotOwned": {
			Reason: "It is installed and healthy. That it would not be deleted with the Application is for an administrator.",
			Object: app(observed(with(component("db", appsv1alpha1.HealthHealthy, notOwned)))), Want: verdict.Current,
		},
		"CheckPasses": {Reason: "All is well.", Object: app(observed(with(healthy("db")), check("True", ""))), Want: verdict.Current},
		"CheckFails": {
			Reason: "The health check knows better than the components.", Object: app(observed(with(healthy("db")), check("False", ""))),
			Want: verdict.InProgress,
		},
		"CheckStarts": {
			Reason: "It says nothing yet.", Object: app(observed(with(healthy("db")), check("Unknown", ""))), Want: verdict.InProgress,
		},
		"NotEnrolled": {
			Reason: "Masthead does not observe it until the cluster is enrolled again.", Want: verdict.Failed,
			Object: app(UnseenApplication(leftBehind(), unobserved)),
		},
	}}
	// The reasons that keep Masthead from observing a component, or from running the health check.
	for reason, want := range map[string]verdict.Verdict{
		appsv1alpha1.ReasonSyncing: verdict.InProgress, appsv1alpha1.ReasonKindNotServed: verdict.InProgress,
		appsv1alpha1.ReasonKindForbidden: verdict.Failed, appsv1alpha1.ReasonKindTooLarge: verdict.Failed,
		appsv1alpha1.ReasonClusterScoped: verdict.Failed, appsv1alpha1.ReasonKindStale: verdict.InProgress,
		appsv1alpha1.ReasonNotAllowed: verdict.Failed, appsv1alpha1.ReasonTooManyDiscovered: verdict.Failed,
		appsv1alpha1.ReasonNoInventory: verdict.Failed, appsv1alpha1.ReasonInventoryNotUnderstood: verdict.Failed,
	} {
		table.Cases["NotSeen"+reason] = verdict.Case{
			Reason: "A component cannot be seen: " + reason, Want: want,
			Object: app(observed(with(healthy("db"), component("web", "", notSeen(reason))))),
		}
	}
	for reason, want := range map[string]verdict.Verdict{
		appsv1alpha1.ReasonHealthCheckRefused: verdict.Failed, appsv1alpha1.ReasonHealthCheckForbidden: verdict.Failed,
		appsv1alpha1.ReasonHealthCheckStarting: verdict.InProgress, appsv1alpha1.ReasonObserveOnly: verdict.Failed,
	} {
		table.Cases["Check"+reason] = verdict.Case{
			Reason: "The health check does not run: " + reason, Want: want,
			Object: app(observed(with(healthy("db")), check("Unknown", reason))),
		}
	}
	table.Check(t)
	reasons := verdict.Reasons(t, "apis/apps/v1alpha1")
	for name := range verdict.Reasons(t, "apis/apps/v1alpha1", "for the health of a component") {
		delete(reasons, name)
	}
	verdict.Covers(t, reasons, map[string]string{
		"ReasonHealthChanged": "It is the reason of Events.",
	}, table.Objects()...)
}
