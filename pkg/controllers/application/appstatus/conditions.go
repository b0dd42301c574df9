// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// setCondition sets a condition. Its time changes only with its status.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition) {
	c.Message = condition.Text(c.Message, bounds.Message)
	meta.SetStatusCondition(conditions, c)
}

// installedCondition says whether everything is installed. Missing components and dependencies take precedence over
// those that cannot be observed.
func installedCondition(components []componentEntry, dependencies []appsv1alpha1.DependencyStatus) metav1.Condition {
	c := metav1.Condition{Type: appsv1alpha1.ConditionInstalled}
	missing := componentsWith(components, corev1.ConditionFalse)
	missingDependencies := dependenciesWith(dependencies, corev1.ConditionFalse)
	notSeen := slices.Concat(componentsWith(components, corev1.ConditionUnknown), dependenciesWith(dependencies, corev1.ConditionUnknown))
	switch {
	case len(missing) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, appsv1alpha1.ReasonComponentsMissing
		c.Message = fmt.Sprintf("%d of %d components are not installed: %s.", len(missing), len(components), someNames(missing))
	case len(missingDependencies) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, appsv1alpha1.ReasonDependenciesMissing
		c.Message = fmt.Sprintf("%d of %d dependencies are not installed: %s.",
			len(missingDependencies), len(dependencies), someNames(missingDependencies))
	case len(notSeen) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, appsv1alpha1.ReasonComponentsNotWatched
		c.Message = fmt.Sprintf("Whether these are installed is unknown: %s.", someNames(notSeen))
	case len(components) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, appsv1alpha1.ReasonNoComponents, noComponents
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, appsv1alpha1.ReasonInstalled, "All components and dependencies are installed."
	}
	return c
}

const noComponents = "The Application has no components."

func componentsWith(entries []componentEntry, installed corev1.ConditionStatus) []string {
	var names []string
	for _, e := range entries {
		if e.Installed == installed {
			names = append(names, cmp.Or(e.Name, e.Kind))
		}
	}
	return names
}

func dependenciesWith(entries []appsv1alpha1.DependencyStatus, installed corev1.ConditionStatus) []string {
	var names []string
	for _, e := range entries {
		if e.Installed == installed {
			names = append(names, e.Name)
		}
	}
	return names
}

// someNames names the first of a list, and counts the rest.
func someNames(names []string) string {
	const named = 5
	quoted := make([]string, 0, named)
	for _, n := range names[:min(len(names), named)] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	list := strings.Join(quoted, ", ")
	if n := len(names) - named; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return list
}

// readyStatus is the KEP's field ready: the readiness of the health check's Pod, or Unknown without a health check.
func readyStatus(o Observation) corev1.ConditionStatus {
	ready := o.HealthCheck.Ready
	if o.Application.Spec.HealthCheck == nil || ready != corev1.ConditionTrue && ready != corev1.ConditionFalse {
		return corev1.ConditionUnknown
	}
	return ready
}

// healthCheckCondition is the condition for the health check's Pod.
func healthCheckCondition(o Observation) metav1.Condition {
	c := metav1.Condition{Type: appsv1alpha1.ConditionHealthCheckPassed, Status: metav1.ConditionStatus(readyStatus(o))}
	switch p := o.HealthCheck.Problem; {
	case o.Application.Spec.HealthCheck == nil:
		c.Reason, c.Message = appsv1alpha1.ReasonNoHealthCheck, "The Application has no health check."
	case p != nil:
		c.Reason, c.Message = p.Reason, p.Message
	case c.Status == metav1.ConditionTrue:
		c.Reason, c.Message = appsv1alpha1.ReasonHealthCheckReady, "The health check's Pod is ready."
	case c.Status == metav1.ConditionFalse:
		c.Reason, c.Message = appsv1alpha1.ReasonHealthCheckNotReady, "The health check's Pod is not ready."
	default:
		c.Reason, c.Message = appsv1alpha1.ReasonHealthCheckStarting, "The health check's Pod does not report yet whether it is ready."
	}
	return c
}

// watchedCondition says whether every component can be observed, and belongs to the Application. It names the worst
// reason: what needs action comes before what passes by itself.
func watchedCondition(o Observation) metav1.Condition {
	c := metav1.Condition{Type: appsv1alpha1.ConditionComponentsWatched, Status: metav1.ConditionFalse}
	if o.unseen != nil {
		c.Reason, c.Message = o.unseen.Reason, o.unseen.Message
		return c
	}
	worst, order, name := (*condition.Error)(nil), 0, ""
	affected := 0
	for _, v := range o.Components {
		p, rank := v.Unseen, 3
		switch {
		case p != nil && p.Reason == appsv1alpha1.ReasonSyncing:
			rank = 1
		case p == nil && v.Problem != nil && v.Problem.Reason == appsv1alpha1.ReasonOwnershipForbidden:
			p, rank = v.Problem, 2
		}
		if p == nil {
			continue
		}
		affected++
		if called := cmp.Or(v.Name, v.Kind.Kind); worst == nil || rank > order || rank == order && called < name {
			worst, order, name = p, rank, called
		}
	}
	if worst == nil {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, appsv1alpha1.ReasonWatched, watchedMessage(o)
		return c
	}
	c.Reason, c.Message = worst.Reason, fmt.Sprintf("Component %q: %s", name, worst.Message)
	if affected > 1 {
		c.Message += fmt.Sprintf(" %d components are affected in all.", affected)
	}
	return c
}

// watchedMessage is the message if every component can be observed.
func watchedMessage(o Observation) string {
	message := "All components are watched."
	if len(o.NotServed) > 0 {
		// There may be no such objects. Or the name is misspelt.
		message += fmt.Sprintf(" The cluster does not serve these kinds of spec.discover: %s.", someNames(o.NotServed))
	}
	return message
}

// statusMessage describes problems in this order: the components, the dependencies, the health check. It is empty
// without any.
func statusMessage(o Observation, components []componentEntry, dependencies []appsv1alpha1.DependencyStatus) string {
	if o.unseen != nil {
		return condition.Text(o.unseen.Message, bounds.Message)
	}
	parts := []string{componentsMessage(components)}
	if missing := dependenciesWith(dependencies, corev1.ConditionFalse); len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("Dependencies that are not installed: %s.", someNames(missing)))
	}
	c := healthCheckCondition(o)
	if o.Application.Spec.HealthCheck != nil && c.Status != metav1.ConditionTrue && !strings.Contains(parts[0], c.Message) {
		parts = append(parts, c.Message)
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return condition.Text(strings.Join(parts, " "), bounds.Message)
}

// componentsMessage describes the worst of the sorted components, and counts the others. It is empty if all that count
// are healthy.
func componentsMessage(components []componentEntry) string {
	unhealthy := 0
	for unhealthy < len(components) && !components[unhealthy].Ignored && components[unhealthy].Health != appsv1alpha1.HealthHealthy {
		unhealthy++
	}
	switch {
	case len(components) == 0:
		return noComponents
	case unhealthy == 0 && worstHealth(components) == appsv1alpha1.HealthUnknown:
		return "Every component is excluded from the health by its annotation."
	case unhealthy == 0:
		return ""
	}
	worst := components[0]
	message := fmt.Sprintf("%s is %s: %s", worst.title(), worst.Health, cmp.Or(worst.Message, worst.Reason))
	if worst.Message == "" && worst.Reason == "" {
		message = fmt.Sprintf("%s is %s", worst.title(), worst.Health)
	}
	if !strings.HasSuffix(message, ".") {
		message += "."
	}
	switch others := unhealthy - 1; {
	case others == 1:
		message += " 1 more is not healthy."
	case others > 1:
		message += fmt.Sprintf(" %d more are not healthy.", others)
	}
	return message
}
