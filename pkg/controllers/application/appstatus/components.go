// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// componentEntry is a component's entry in a status, with further inputs of the conditions.
type componentEntry struct {
	appsv1alpha1.ComponentStatus

	// unseen reports whether Masthead cannot observe it.
	unseen bool

	// discovered reports whether it was discovered; namespace is then the object's. elsewhere reports whether that differs
	// from the Application's.
	discovered bool
	namespace  string
	elsewhere  bool

	// finished reports whether it is a Job that has finished, so that its entry is needed.
	finished bool
}

// title is the kind and the name of a component, for messages.
func (e componentEntry) title() string {
	switch {
	case e.Name == "":
		return e.Kind
	case e.elsewhere:
		return fmt.Sprintf("%s %q of the namespace %q", e.Kind, e.Name, e.namespace)
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Name)
}

// discoveredStatus is the status entry of a discovered object.
func (e componentEntry) discoveredStatus() appsv1alpha1.DiscoveredStatus {
	return appsv1alpha1.DiscoveredStatus{
		Group: e.Group, Version: e.Version, Kind: e.Kind, Namespace: e.namespace, Name: e.Name,
		Installed: e.Installed, Health: e.Health, Ignored: e.Ignored, Reason: e.Reason, Message: e.Message, Since: e.Since,
	}
}

// partition separates discovered components from named ones.
func partition(entries []componentEntry) (found, named []componentEntry) {
	for _, e := range entries {
		if e.discovered {
			found = append(found, e)
		} else {
			named = append(named, e)
		}
	}
	return found, named
}

// listable are the entries that a status lists, if it cannot list all: the worst, and those of Jobs that have finished.
func listable(entries []componentEntry) []componentEntry {
	others := appsv1alpha1.MaxStatusEntries
	for _, e := range entries {
		if e.finished {
			others--
		}
	}
	return slices.DeleteFunc(entries, func(e componentEntry) bool {
		if e.finished {
			return false
		}
		others--
		return others < 0
	})
}

// entryKey identifies an entry of a status: components have only a name.
type entryKey struct{ group, kind, namespace, name string }

// saidBefore has the status's entries of named and discovered components.
func saidBefore(old appsv1alpha1.ApplicationStatus) map[entryKey]appsv1alpha1.ComponentStatus {
	before := make(map[entryKey]appsv1alpha1.ComponentStatus, len(old.Components)+len(old.Discovered))
	for _, c := range old.Components {
		before[entryKey{name: c.Name}] = c
	}
	for _, d := range old.Discovered {
		before[entryKey{d.Group, d.Kind, d.Namespace, d.Name}] = appsv1alpha1.ComponentStatus{
			Name: d.Name, Group: d.Group, Version: d.Version, Kind: d.Kind,
			Installed: d.Installed, Health: d.Health, Ignored: d.Ignored, Reason: d.Reason, Message: d.Message, Since: d.Since,
		}
	}
	return before
}

// key is the key of a view's status entry.
func (v *ComponentView) key() entryKey {
	if !v.discovered {
		return entryKey{name: v.Name}
	}
	return entryKey{v.Kind.Group, v.Kind.Kind, v.Namespace, v.Name}
}

// rank orders entries: first those that count and are not healthy, then unhealthy ones left out of the health, then
// healthy ones.
func (e componentEntry) rank() int {
	rank := 2 * bounds.HealthRank(e.Health)
	if e.Ignored {
		return min(rank, 1)
	}
	return rank
}

// componentEntries are the entries of the components, worst first.
func componentEntries(o Observation, now metav1.Time) []componentEntry {
	before := saidBefore(o.Application.Status)
	entries := make([]componentEntry, 0, len(o.Components))
	for _, v := range o.Components {
		b, known := before[v.key()]
		e := componentEntry{
			ComponentStatus: componentStatus(v, b), unseen: v.Unseen != nil, discovered: v.discovered, namespace: v.Namespace,
			elsewhere: v.Namespace != "" && v.Namespace != o.Application.Namespace, finished: v.hasFinished(b),
		}
		e.Since = &now
		if known && b.Since != nil && b.Installed == e.Installed && b.Health == e.Health {
			e.Since = b.Since.DeepCopy()
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b componentEntry) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.namespace, b.namespace))
	})
	return entries
}

// componentStatus is a component's status entry, without the time. was is the previous one, the zero value if there was
// none.
//
// The entry of a Job that has finished is the memory of it: nothing else is left once its ttlSecondsAfterFinished has
// passed. It ends when the spec names another object, or when there is a Job of that name again. Likewise, the entry of
// a CronJob is the memory of its last run while the next one is under way.
func componentStatus(v ComponentView, was appsv1alpha1.ComponentStatus) appsv1alpha1.ComponentStatus {
	c := appsv1alpha1.ComponentStatus{Name: v.Name, Group: v.Kind.Group, Version: v.Kind.Version, Kind: v.Kind.Kind}
	if v.held != nil {
		c = *v.held
		c.Since = nil
		return c
	}
	what, finished := v.Problem, v.hasFinished(was)
	switch {
	case v.Unseen != nil:
		c.Installed, c.Health, what = corev1.ConditionUnknown, appsv1alpha1.HealthUnknown, v.Unseen
	case v.Found == nil && finished:
		c.Installed, c.Health, c.Ignored = corev1.ConditionTrue, appsv1alpha1.HealthHealthy, was.Ignored
		what = &condition.Error{Reason: appsv1alpha1.ReasonFinished}
	case v.Found == nil:
		c.Installed, c.Health = corev1.ConditionFalse, appsv1alpha1.HealthMissing
		what = orElse(what, appsv1alpha1.ReasonNotFound, fmt.Sprintf("There is no %s %q with the annotation %s.",
			v.Kind.Kind, objectName(v), appsv1alpha1.ApplicationAnnotation))
	case !v.Installed:
		c.Installed, c.Health = corev1.ConditionFalse, appsv1alpha1.HealthMissing
		what = orElse(what, appsv1alpha1.ReasonLabelsDoNotMatch, fmt.Sprintf("The labels of the %s %q do not match the selector.",
			v.Kind.Kind, objectName(v)))
	default:
		c.Installed = corev1.ConditionTrue
		c.Health, what = foundHealth(v)
		if decided := was.Health == appsv1alpha1.HealthHealthy || was.Health == appsv1alpha1.HealthDegraded; decided && v.isRunning() &&
			was.Group == c.Group && was.Kind == c.Kind {
			// What became of the run before is recorded nowhere else.
			c.Health, what = was.Health, &condition.Error{Reason: was.Reason, Message: was.Message}
		}
	}
	if v.Found != nil {
		c.Ignored = v.Found.Ignored
	}
	if what != nil {
		message := what.Message
		if finished {
			message = v.finishedMessage() + " " + message
		}
		c.Reason, c.Message = condition.Text(what.Reason, bounds.ComponentReason), condition.Text(message, bounds.ComponentMessage)
	}
	return c
}

// hasFinished reports whether a component is a Job that has finished, as far as is known. was is its previous entry.
func (v *ComponentView) hasFinished(was appsv1alpha1.ComponentStatus) bool {
	switch {
	case v.Found != nil:
		return v.Installed && v.Found.Finished
	case v.Kind.Group != record.JobKind.Group || v.Kind.Kind != record.JobKind.Kind:
		return false
	}
	return was.Group == v.Kind.Group && was.Kind == v.Kind.Kind && strings.HasPrefix(was.Message, v.finishedMessage())
}

// runNotEnded is what pkg/health says of a CronJob with a run that has not ended.
const runNotEnded = "The last run has not ended"

// isRunning reports whether an object is a CronJob of which nothing more is known than that it runs. A HealthRule of
// the hub may say otherwise.
func (v *ComponentView) isRunning() bool {
	return v.Kind.Group == record.JobKind.Group && v.Kind.Kind == "CronJob" && v.Found.Health.Health == appsv1alpha1.HealthProgressing &&
		strings.HasPrefix(v.Found.Health.Message, runNotEnded)
}

// finishedMessage begins the message of a Job that has finished. It names the object, so that it is not taken for
// another one after a change of the spec.
func (v *ComponentView) finishedMessage() string {
	return fmt.Sprintf("The Job %q has completed.", objectName(*v))
}

// foundHealth is an object's own health. A problem with its belonging to the Application is shown only if the object
// is otherwise Healthy; the condition ComponentsWatched always shows it.
func foundHealth(v ComponentView) (appsv1alpha1.Health, *condition.Error) {
	h := v.Found.Health
	switch {
	case v.Found.Finished && v.Found.Deleting, v.Found.Finished && h.Health == appsv1alpha1.HealthHealthy && v.Problem == nil:
		// It is deleted because it has finished.
		return appsv1alpha1.HealthHealthy, &condition.Error{Reason: appsv1alpha1.ReasonFinished}
	case bounds.HealthRank(h.Health) < 0 || h.Health == appsv1alpha1.HealthMissing:
		// Only Masthead decides whether it exists.
		return appsv1alpha1.HealthUnknown, &condition.Error{Reason: h.Reason, Message: h.Message}
	case h.Health == appsv1alpha1.HealthHealthy && v.Found.Deleting:
		// Only its metadata was read.
		return appsv1alpha1.HealthProgressing, &condition.Error{Reason: appsv1alpha1.ReasonTerminating, Message: "It is being deleted."}
	case h.Health == appsv1alpha1.HealthHealthy && v.Problem != nil:
		return h.Health, v.Problem
	}
	return h.Health, &condition.Error{Reason: h.Reason, Message: h.Message}
}

func orElse(p *condition.Error, reason, message string) *condition.Error {
	if p != nil {
		return p
	}
	return &condition.Error{Reason: reason, Message: message}
}

// objectName is the object name of a component.
func objectName(v ComponentView) string { return cmp.Or(v.Kind.Name, v.Name) }

func countComponents(entries []componentEntry, selected int32) *appsv1alpha1.ComponentCounts {
	counts := &appsv1alpha1.ComponentCounts{Total: bounds.Count(len(entries)), Selected: selected}
	for _, e := range entries {
		if e.Installed == corev1.ConditionTrue {
			counts.Installed++
		}
		if e.Ignored {
			counts.Ignored++
		}
		if e.discovered {
			counts.Discovered++
		}
		switch e.Health {
		case appsv1alpha1.HealthHealthy:
			counts.Healthy++
		case appsv1alpha1.HealthSuspended:
			counts.Suspended++
		case appsv1alpha1.HealthProgressing:
			counts.Progressing++
		case appsv1alpha1.HealthMissing:
			counts.Missing++
		case appsv1alpha1.HealthDegraded:
			counts.Degraded++
		case appsv1alpha1.HealthUnknown:
			counts.Unknown++
		}
	}
	return counts
}

// dependencyEntries are the entries of the dependencies, those not installed first.
func dependencyEntries(
	views []DependencyView, old []appsv1alpha1.DependencyStatus, now metav1.Time,
) []appsv1alpha1.DependencyStatus {
	before := make(map[string]appsv1alpha1.DependencyStatus, len(old))
	for _, d := range old {
		before[d.Name] = d
	}
	entries := make([]appsv1alpha1.DependencyStatus, 0, len(views))
	for _, v := range views {
		e := dependencyStatus(v)
		e.Since = &now
		if b, ok := before[v.name]; ok && b.Since != nil && b.Installed == e.Installed {
			e.Since = b.Since.DeepCopy()
		}
		entries = append(entries, e)
	}
	rank := func(d appsv1alpha1.DependencyStatus) int {
		return slices.Index([]corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown, corev1.ConditionTrue}, d.Installed)
	}
	slices.SortFunc(entries, func(a, b appsv1alpha1.DependencyStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return entries
}

// dependencyStatus is a dependency's status entry, without the time.
func dependencyStatus(v DependencyView) appsv1alpha1.DependencyStatus {
	d := appsv1alpha1.DependencyStatus{Name: v.name}
	switch {
	case v.unseen:
		d.Installed = corev1.ConditionUnknown
	case v.status == nil:
		d.Installed = corev1.ConditionFalse
	default:
		d.Installed = corev1.ConditionTrue
		// Both are untrusted: others than Masthead may have written them.
		d.Ready, d.Health = corev1.ConditionUnknown, appsv1alpha1.HealthUnknown
		if v.status.Ready == corev1.ConditionTrue || v.status.Ready == corev1.ConditionFalse {
			d.Ready = v.status.Ready
		}
		if bounds.HealthRank(v.status.Health) >= 0 {
			d.Health = v.status.Health
		}
	}
	return d
}

// installedNames are the names of everything installed, in one list as in the KEP. A name shared by a component and a
// dependency is included when both are installed.
func installedNames(components []componentEntry, dependencies []appsv1alpha1.DependencyStatus) []string {
	installed := map[string]bool{}
	note := func(name string, status corev1.ConditionStatus) {
		before, known := installed[name]
		installed[name] = status == corev1.ConditionTrue && (before || !known)
	}
	for _, c := range components {
		if !c.discovered { // The KEP's list contains names from the spec.
			note(c.Name, c.Installed)
		}
	}
	for _, d := range dependencies {
		note(d.Name, d.Installed)
	}
	var names []string
	for name, is := range installed {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
