// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// part is a component in one state, and what is true of it by itself.
type part struct {
	name     string
	modify   []func(*ComponentView)
	health   appsv1alpha1.Health // Its own, as the cluster says.
	counts   bool                // It counts for the health.
	there    corev1.ConditionStatus
	shown    appsv1alpha1.Health
	stalls   bool
	finished bool
}

// parts are the states of a component.
func parts() []part {
	finishedAndGone := func(v *ComponentView) {
		asFinishedJob(v)
		missing(v)
	}
	out := []part{
		{name: "Missing", modify: []func(*ComponentView){missing}, counts: true, there: "False", shown: appsv1alpha1.HealthMissing},
		{name: "Unmatched", modify: []func(*ComponentView){unmatched}, counts: true, there: "False", shown: appsv1alpha1.HealthMissing},
		{
			name: "Syncing", modify: []func(*ComponentView){notSeen(appsv1alpha1.ReasonSyncing)}, counts: true, there: "Unknown",
			shown: appsv1alpha1.HealthUnknown,
		},
		{
			name: "Forbidden", modify: []func(*ComponentView){notSeen(appsv1alpha1.ReasonKindForbidden)}, counts: true, there: "Unknown",
			shown: appsv1alpha1.HealthUnknown, stalls: true,
		},
		{
			name: "Deleting", modify: []func(*ComponentView){deleting}, health: appsv1alpha1.HealthHealthy, counts: true, there: "True",
			shown: appsv1alpha1.HealthProgressing,
		},
		{
			name: "NotOwned", modify: []func(*ComponentView){notOwned}, health: appsv1alpha1.HealthHealthy, counts: true, there: "True",
			shown: appsv1alpha1.HealthHealthy,
		},
		{
			name: "Finished", modify: []func(*ComponentView){asFinishedJob}, health: appsv1alpha1.HealthHealthy, counts: true, there: "True",
			shown: appsv1alpha1.HealthHealthy,
		},
		{
			name: "FinishedAndDeleting", modify: []func(*ComponentView){asFinishedJob, deleting}, health: appsv1alpha1.HealthHealthy, counts: true,
			there: "True", shown: appsv1alpha1.HealthHealthy,
		},
		// Whether it is remembered depends on the status before.
		{name: "FinishedAndGone", modify: []func(*ComponentView){finishedAndGone}, counts: true, there: "False", shown: appsv1alpha1.HealthMissing, finished: true},
	}
	for _, h := range []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing, appsv1alpha1.HealthUnknown,
		appsv1alpha1.HealthDegraded, appsv1alpha1.HealthMissing, "Splendid",
	} {
		shown := h
		if h == "Splendid" || h == appsv1alpha1.HealthMissing {
			shown = appsv1alpha1.HealthUnknown
		}
		p := part{name: "Found" + string(h), health: h, counts: true, there: "True", shown: shown, stalls: h == appsv1alpha1.HealthDegraded}
		out = append(out, p)
		p.name, p.counts, p.stalls, p.modify = "Ignored"+string(h), false, false, []func(*ComponentView){ignored}
		out = append(out, p)
	}
	return out
}

// situation is an Application with at most two components, a dependency, a health check, and a status before.
type situation struct {
	Parts                     []part
	Dependency, Check, Before string
	o                         Observation
	status                    appsv1alpha1.ApplicationStatus
}

func (s *situation) String() string {
	var names []string
	for _, p := range s.Parts {
		names = append(names, p.name)
	}
	return fmt.Sprintf("%q dependency %q check %q before %q: %+v", names, s.Dependency, s.Check, s.Before, s.status)
}

func situations() iter.Seq[*situation] {
	all := parts()
	combinations := [][]part{nil}
	for i, p := range all {
		combinations = append(combinations, []part{p})
		for _, q := range all[i:] {
			combinations = append(combinations, []part{p, q})
		}
	}
	names := []string{"db", "web"}
	observe := func(ps []part) Observation {
		o := observed()
		for i, p := range ps {
			o.Components = append(o.Components, component(names[i], p.health, p.modify...))
		}
		return o
	}
	jobs := part{health: appsv1alpha1.HealthHealthy, modify: []func(*ComponentView){asFinishedJob}}
	befores := map[string]appsv1alpha1.ApplicationStatus{
		"": {}, "Finished": Build(observe([]part{jobs, jobs}), statusTime(0)),
		"Degraded": Build(observe([]part{{health: appsv1alpha1.HealthDegraded}, {health: appsv1alpha1.HealthDegraded}}), statusTime(0)),
	}
	return func(yield func(*situation) bool) {
		for _, combination := range combinations {
			for _, dependency := range []string{"", "Installed", "Missing", "NotSeen"} {
				for _, check := range []string{"", "True", "False", "Unknown", "Refused"} {
					for name, before := range befores {
						s := &situation{Parts: combination, Dependency: dependency, Check: check, Before: name, o: observe(combination)}
						s.o.Application.Status = before
						switch dependency {
						case "Installed":
							s.o.Dependencies = []DependencyView{{name: "mysql", status: &appsv1alpha1.ApplicationStatus{Ready: corev1.ConditionFalse, Health: "Degraded"}}}
						case "Missing":
							s.o.Dependencies = []DependencyView{{name: "mysql"}}
						case "NotSeen":
							s.o.Dependencies = []DependencyView{{name: "mysql", unseen: true}}
						}
						switch check {
						case "":
						case "Refused":
							checked(corev1.ConditionUnknown, &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckRefused, Message: "No."})(&s.o)
						default:
							checked(corev1.ConditionStatus(check), nil)(&s.o)
						}
						s.status = Build(s.o, statusTime(1))
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

// remembered reports whether a part is a Job that is gone, and of which the status before says that it finished.
func (s *situation) remembered(p part) bool { return p.finished && s.Before == "Finished" }

func (s *situation) there(p part) corev1.ConditionStatus {
	if s.remembered(p) {
		return corev1.ConditionTrue
	}
	return p.there
}

func (s *situation) shown(p part) appsv1alpha1.Health {
	if s.remembered(p) {
		return appsv1alpha1.HealthHealthy
	}
	return p.shown
}

func (s *situation) is(conditionType string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(s.status.Conditions, conditionType); c != nil {
		return c.Status
	}
	return ""
}

// TestStatusExhaustive checks what is true of every status. What each says is in TestConditions and its neighbours.
func TestStatusExhaustive(t *testing.T) {
	names := []string{"db", "web"}
	installed := func(s *situation) bool {
		return !slices.ContainsFunc(s.Parts, func(p part) bool { return s.there(p) != corev1.ConditionTrue }) &&
			(s.Dependency == "" || s.Dependency == "Installed")
	}
	counted := func(s *situation) []part {
		return slices.DeleteFunc(slices.Clone(s.Parts), func(p part) bool { return !p.counts })
	}
	healthy := func(s *situation) bool {
		return !slices.ContainsFunc(counted(s), func(p part) bool { return s.shown(p) != appsv1alpha1.HealthHealthy })
	}
	ready := func(s *situation) bool {
		something := len(s.Parts) > 0 || s.Dependency != "" || s.Check != ""
		return something && installed(s) && healthy(s) && (s.Check == "" || s.Check == "True")
	}
	exhaustive.Check(t, situations(), []exhaustive.Property[*situation]{
		{
			Sentence: "An Application is ready exactly if it names something, all of it is installed, what counts is healthy, and its health check passes.",
			Holds: func(s *situation) bool {
				return (s.is(appsv1alpha1.ConditionReady) == metav1.ConditionTrue) == ready(s)
			},
		},
		{
			Sentence: "It is installed exactly if all that it names is, and it names something but a health check.",
			Holds: func(s *situation) bool {
				return (s.is(appsv1alpha1.ConditionInstalled) == metav1.ConditionTrue) == (installed(s) && len(s.Parts) > 0)
			},
		},
		{
			Sentence: "Its health is that of the worst component that counts, and Unknown without any.",
			Holds: func(s *situation) bool {
				want := appsv1alpha1.Health("")
				for _, p := range counted(s) {
					if bounds.HealthRank(s.shown(p)) > bounds.HealthRank(want) {
						want = s.shown(p)
					}
				}
				return s.status.Health == want || want == "" && s.status.Health == appsv1alpha1.HealthUnknown
			},
		},
		{
			Sentence: "What is not there, or not seen, is never healthy.",
			When:     func(s *situation) bool { return len(s.Parts) > 0 },
			Holds: func(s *situation) bool {
				return !slices.ContainsFunc(s.status.Components, func(c appsv1alpha1.ComponentStatus) bool {
					return c.Installed != corev1.ConditionTrue && c.Health == appsv1alpha1.HealthHealthy
				})
			},
		},
		{
			Sentence: "Every component has an entry that says whether it is there, and its health.",
			When:     func(s *situation) bool { return len(s.Parts) > 0 },
			Holds: func(s *situation) bool {
				for i, p := range s.Parts {
					if !slices.ContainsFunc(s.status.Components, func(c appsv1alpha1.ComponentStatus) bool {
						return c.Name == names[i] && c.Installed == s.there(p) && c.Health == s.shown(p) && c.Ignored == !p.counts
					}) {
						return false
					}
				}
				return len(s.status.Components) == len(s.Parts)
			},
		},
		{
			Sentence: "Each component is counted once, by its health.",
			Holds: func(s *situation) bool {
				c := s.status.Counts
				return int(c.Total) == len(s.Parts) && c.Total == c.Healthy+c.Suspended+c.Progressing+c.Missing+c.Degraded+c.Unknown
			},
		},
		{
			Sentence: "What is ready is not stalled, and has nothing to report but that nothing counts.",
			When:     func(s *situation) bool { return s.is(appsv1alpha1.ConditionReady) == metav1.ConditionTrue },
			Holds: func(s *situation) bool {
				return s.is(appsv1alpha1.ConditionStalled) == "" && (s.status.Message == "" || len(counted(s)) == 0)
			},
		},
		{
			Sentence: "What is not ready says why, in its message and in the condition.",
			When:     func(s *situation) bool { return s.is(appsv1alpha1.ConditionReady) != metav1.ConditionTrue },
			Holds: func(s *situation) bool {
				c := meta.FindStatusCondition(s.status.Conditions, appsv1alpha1.ConditionReady)
				return c.Reason != appsv1alpha1.ReasonReady && c.Message != "" && (s.status.Message != "" || s.Dependency == "NotSeen")
			},
		},
		{
			Sentence: "It is stalled exactly if a component or the health check needs an intervention.",
			Holds: func(s *situation) bool {
				worst := slices.ContainsFunc(counted(s), func(p part) bool { return p.stalls && s.shown(p) == s.status.Health })
				unseen := slices.ContainsFunc(s.Parts, func(p part) bool { return p.name == "Forbidden" })
				return (s.is(appsv1alpha1.ConditionStalled) == metav1.ConditionTrue) == (!ready(s) && (worst || unseen || s.Check == "Refused"))
			},
		},
		{
			Sentence: "The health of a dependency does not count.",
			When:     func(s *situation) bool { return s.Dependency == "Installed" && len(s.Parts) > 0 },
			Holds: func(s *situation) bool {
				return (s.is(appsv1alpha1.ConditionHealthy) == metav1.ConditionTrue) == (healthy(s) && len(counted(s)) > 0)
			},
		},
		{
			Sentence: "The same observation leads to the same status, so that nothing is written again.",
			Holds: func(s *situation) bool {
				again := s.o
				again.Application = s.o.Application.DeepCopy()
				again.Application.Status = *s.status.DeepCopy()
				return Equal(s.status, Build(again, statusTime(60)))
			},
		},
	})
}
