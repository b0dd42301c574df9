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

// totals are sums over Applications.
type totals struct {
	applications fleetv1alpha1.ApplicationCounts
	components   fleetv1alpha1.ComponentTotals

	// worst are the Applications that are not healthy or not ready, worst first, up to a report's limit; more reports
	// whether there are more.
	worst []fleetv1alpha1.WorstApplication
	more  bool
}

// sumTotals sums up Applications.
func sumTotals(applications map[types.NamespacedName]roundSummary) totals {
	var t totals
	var wanted, installed int64
	var unhealthy []unhealthyApplication
	t.applications.Total = bounds.Count(len(applications))
	for key, s := range applications {
		count(&t.applications, s.Summary)
		wanted, installed = wanted+int64(s.Wanted), installed+int64(s.Installed)
		if s.Health != appsv1alpha1.HealthHealthy || s.Ready == corev1.ConditionFalse {
			unhealthy = append(unhealthy, unhealthyApplication{key, s.Summary})
		}
	}
	t.components.Wanted, t.components.Installed = saturated(wanted), saturated(installed)
	slices.SortFunc(unhealthy, func(a, b unhealthyApplication) int {
		return cmp.Or(cmp.Compare(bounds.HealthRank(b.Health), bounds.HealthRank(a.Health)),
			cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	t.more = len(unhealthy) > fleetv1alpha1.MaxWorstApplications
	for _, u := range unhealthy[:min(len(unhealthy), fleetv1alpha1.MaxWorstApplications)] {
		t.worst = append(t.worst, u.report())
	}
	return t
}

func count(c *fleetv1alpha1.ApplicationCounts, s Summary) {
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

// unhealthyApplication is an Application that is not healthy.
type unhealthyApplication struct {
	key types.NamespacedName
	Summary
}

func (u unhealthyApplication) report() fleetv1alpha1.WorstApplication {
	return fleetv1alpha1.WorstApplication{
		Namespace: u.key.Namespace, Name: u.key.Name,
		Type: u.ApplicationType, Version: u.Version,
		Health: string(u.Health), Ready: metav1.ConditionStatus(u.Ready),
		Installed: fmt.Sprintf("%d/%d", u.Installed, u.Wanted),
		Message:   condition.Text(u.Message, bounds.SummaryMessage),
	}
}

func saturated(n int64) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is bounded.
