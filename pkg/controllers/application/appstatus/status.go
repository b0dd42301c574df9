// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
)

// Build is the wanted status of an Application. It depends only on the observation, which includes the current status:
// times change only with what they are about, so that an up-to-date Application is not written again.
//
// Health is that of the components alone. Dependencies' health is shown beside it and does not count: two Applications
// that depend on each other would otherwise keep each other unhealthy forever.
func Build(o Observation, now metav1.Time) appsv1alpha1.ApplicationStatus {
	now = now.Rfc3339Copy() // The API server's precision.
	old := o.Application.Status
	components := componentEntries(o, now)
	dependencies := dependencyEntries(o.Dependencies, old.Dependencies, now)
	counts := countComponents(components, o.Selected)

	status := appsv1alpha1.ApplicationStatus{
		ObservedGeneration:  o.Application.Generation,
		Installed:           installedNames(components, dependencies),
		Ready:               readyStatus(o),
		ComponentsInstalled: fmt.Sprintf("%d/%d", counts.Installed, counts.Total),
		Health:              worstHealth(components),
		Counts:              counts,
		HealthCheckPod:      o.HealthCheck.Pod,
		OwnedKinds:          o.OwnedKinds,
		Conditions:          slices.Clone(old.Conditions),
	}
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = o.Application.Generation, now
		setCondition(&status.Conditions, c)
	}
	set(installedCondition(components, dependencies))
	set(healthCheckCondition(o))
	set(healthyCondition(status.Health, components))
	set(watchedCondition(o))
	setReady(&status, o, set)
	status.Message = statusMessage(o, components, dependencies)

	status.History = appendHistory(old, status.Health, status.Message, now)

	found, named := partition(components)
	status.Truncated = max(len(found), len(named)) > appsv1alpha1.MaxStatusEntries
	status.Components = listed(listable(named), func(c componentEntry) appsv1alpha1.ComponentStatus { return c.ComponentStatus })
	status.Discovered = listed(listable(found), componentEntry.discoveredStatus)
	status.Dependencies = listed(dependencies, func(d appsv1alpha1.DependencyStatus) appsv1alpha1.DependencyStatus { return d })
	return status
}

// listed are the first entries, up to the status's limit.
func listed[E, S any](entries []E, status func(E) S) []S {
	var out []S
	for _, e := range entries[:min(len(entries), appsv1alpha1.MaxStatusEntries)] {
		out = append(out, status(e))
	}
	return out
}

// Equal reports whether two statuses are equal, so that there is nothing to write.
func Equal(a, b appsv1alpha1.ApplicationStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// UnseenApplication is the observation of an Application that is not observed any more, or cannot be. The resulting
// status says so of every component, instead of repeating the last observation.
func UnseenApplication(app *appsv1alpha1.Application, why condition.Error) Observation {
	o := Observation{Application: app, unseen: &why, OwnedKinds: app.Status.OwnedKinds}
	for name, kind := range app.Spec.Components {
		o.Components = append(o.Components, ComponentView{Name: name, Kind: kind, Unseen: &why})
	}
	o.Components = append(o.Components, unseenDiscovered(app, &why)...)
	for _, name := range app.Spec.Dependencies {
		o.Dependencies = append(o.Dependencies, DependencyView{name: name, unseen: true})
	}
	if app.Spec.HealthCheck != nil {
		o.HealthCheck = healthcheck.View{Ready: corev1.ConditionUnknown, Problem: &why}
	}
	return o
}

// Summarize is the summary of an Application for the hub, taken from the status that the cluster's users see. An
// Application without a status is Unknown.
func Summarize(app *appsv1alpha1.Application) rollup.Summary {
	s := rollup.Summary{
		ApplicationType: condition.Text(app.Spec.Type, maxSummaryName),
		Version:         condition.Text(app.Spec.Version, maxSummaryName),
		Health:          app.Status.Health,
		Ready:           app.Status.Ready,
		Wanted:          min(bounds.Count(len(app.Spec.Components)), maxSummaryComponents),
		Message:         condition.Text(app.Status.Message, bounds.SummaryMessage),
	}
	if c := app.Status.Counts; c != nil {
		s.Wanted = min(max(c.Total, 0), maxSummaryComponents)
		s.Installed = min(max(c.Installed, 0), s.Wanted)
	}
	if bounds.HealthRank(s.Health) < 0 {
		s.Health = appsv1alpha1.HealthUnknown
	}
	if s.Ready != corev1.ConditionTrue && s.Ready != corev1.ConditionFalse {
		s.Ready = corev1.ConditionUnknown
	}
	if s.Message == "" && app.Status.ObservedGeneration <= 0 {
		s.Message = "Masthead has not processed it yet."
	}
	return s
}

const (
	// maxSummaryName bounds the type and the version in a Summary, in characters.
	maxSummaryName = 63

	// maxSummaryComponents bounds the counts in a Summary: more than the schema allows, and small enough to be added up.
	maxSummaryComponents = 1024
)

// unseenDiscovered are the views of the objects in the last status that were discovered.
func unseenDiscovered(app *appsv1alpha1.Application, why *condition.Error) []ComponentView {
	var views []ComponentView
	for _, was := range app.Status.Discovered {
		if was.Name != "" {
			gvk := schema.GroupVersionKind(metav1.GroupVersionKind{Group: was.Group, Version: was.Version, Kind: was.Kind})
			views = append(views, NewComponentView(gvk, types.NamespacedName{Namespace: was.Namespace, Name: was.Name}, why))
		}
	}
	return views
}
