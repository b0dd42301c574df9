// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// Totals are sums over Applications.
type Totals = fleetv1alpha1.LastKnownApplications

// Applications are the observed Applications of a cluster, in no particular order.
type Applications []Application

// An Application is the observed state of one Application.
type Application struct {
	types.NamespacedName
	Summary
}

// Totals sums up Applications.
func (a Applications) Totals() Totals {
	t := Totals{Applications: fleetv1alpha1.ApplicationCounts{Total: bounds.Count(len(a))}}
	var wanted, installed int64
	for i := range a {
		s := &a[i].Summary
		count(&t.Applications, s)
		wanted, installed = wanted+int64(s.Wanted), installed+int64(s.Installed)
	}
	t.Components.Wanted, t.Components.Installed = saturated(wanted), saturated(installed)
	return t
}

// First returns the first Applications by name, up to a limit. It may reorder them.
func (a Applications) First(limit int) Applications {
	if len(a) > limit {
		slices.SortFunc(a, compareNames)
	}
	return a[:min(len(a), limit)]
}

// worst returns the Applications that are not healthy or not ready, worst first, up to a report's limit, and whether
// there are more.
func (a Applications) worst() (worst []fleetv1alpha1.WorstApplication, more bool) {
	var unhealthy Applications
	for i := range a {
		if a[i].Health != appsv1alpha1.HealthHealthy || a[i].Ready == corev1.ConditionFalse {
			unhealthy = append(unhealthy, a[i])
		}
	}
	slices.SortFunc(unhealthy, func(a, b Application) int {
		return cmp.Or(cmp.Compare(bounds.HealthRank(b.Health), bounds.HealthRank(a.Health)), compareNames(a, b))
	})
	for _, u := range unhealthy[:min(len(unhealthy), fleetv1alpha1.MaxWorstApplications)] {
		worst = append(worst, u.report())
	}
	return worst, len(unhealthy) > len(worst)
}

func compareNames(a, b Application) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func count(c *fleetv1alpha1.ApplicationCounts, s *Summary) {
	switch s.Health {
	case appsv1alpha1.HealthHealthy:
		c.Healthy++
	case appsv1alpha1.HealthSuspended:
		c.Suspended++
	case appsv1alpha1.HealthProgressing:
		c.Progressing++
	case appsv1alpha1.HealthMissing:
		c.Missing++
	case appsv1alpha1.HealthDegraded:
		c.Degraded++
	case appsv1alpha1.HealthUnknown:
		c.Unknown++
	default:
		c.Unknown++
	}
	switch s.Ready {
	case corev1.ConditionTrue:
		c.Ready++
	case corev1.ConditionFalse:
		c.NotReady++
	case corev1.ConditionUnknown:
	}
	if s.Wanted > 0 && s.Installed == s.Wanted {
		c.Installed++
	}
}

func (a Application) report() fleetv1alpha1.WorstApplication {
	return fleetv1alpha1.WorstApplication{
		Namespace: a.Namespace, Name: a.Name,
		Type: a.ApplicationType, Version: a.Version,
		Health: string(a.Health), Ready: metav1.ConditionStatus(a.Ready),
		Installed: fmt.Sprintf("%d/%d", a.Installed, a.Wanted),
		Message:   condition.Text(a.Message, bounds.SummaryMessage),
	}
}

func saturated(n int64) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is bounded.
