// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reports waits until the report of the fixture's cluster gives a reason for being current or not, and passes a check.
func (f *fixture) reports(reason string, check func(fleetv1alpha1.ApplicationReportStatus) error) *fleetv1alpha1.ApplicationReport {
	f.T.Helper()
	key, _ := connection.ParseClusterName(f.Cluster)
	report := &fleetv1alpha1.ApplicationReport{}
	f.Within("the report", func() error {
		report = &fleetv1alpha1.ApplicationReport{}
		if err := f.Hub.Get(f.Ctx, key.Published(), report); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(report.Status.Conditions, fleetv1alpha1.ConditionCurrent); c == nil || c.Reason != reason {
			return fmt.Errorf("want the reason %s, the condition is %+v", reason, c)
		}
		return check(report.Status)
	})
	return report
}

func counts(want fleetv1alpha1.ApplicationCounts) func(fleetv1alpha1.ApplicationReportStatus) error {
	return func(s fleetv1alpha1.ApplicationReportStatus) error {
		if s.Applications != want {
			return fmt.Errorf("want %+v, got %+v", want, s.Applications)
		}
		return nil
	}
}

func TestReportFollowsTheApplicationsOfACluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	if err := f.Hub.Create(f.Ctx, ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	configMap := appsv1alpha1.ComponentKind{Version: "v1", Kind: "ConfigMap"}
	f.CreateApplication("whole", map[string]appsv1alpha1.ComponentKind{"a": configMap})
	f.CreateApplication("broken", map[string]appsv1alpha1.ComponentKind{"b": configMap})
	f.CreateConfigMap("a", "whole")
	// Other tests leave nothing in the cluster, but may be deleting it still.
	report := f.reports(fleetv1alpha1.ReasonWatching, counts(fleetv1alpha1.ApplicationCounts{Total: 2, Healthy: 1, Missing: 1, Installed: 1}))
	if w := report.Status.Worst; len(w) != 1 || w[0].Name != "broken" || w[0].Namespace != f.Namespace || w[0].Installed != "0/1" || w[0].Type != "wordpress" {
		t.Errorf("unexpected worst Applications %+v", w)
	}

	f.WaitForIdle()
	f.restart()
	b := f.CreateConfigMap("b", "broken") // When the report has followed this, it has followed everything before it.
	after := f.reports(fleetv1alpha1.ReasonWatching, counts(fleetv1alpha1.ApplicationCounts{Total: 2, Healthy: 2, Installed: 2}))
	first, second := meta.FindStatusCondition(report.Status.Conditions, "Current"), meta.FindStatusCondition(after.Status.Conditions, "Current")
	if !first.LastTransitionTime.Equal(&second.LastTransitionTime) {
		t.Errorf("a restart took the report through another state: %s became %s", first.LastTransitionTime, second.LastTransitionTime)
	}
	f.Delete(f.Workload, b)
	f.reports(fleetv1alpha1.ReasonWatching, counts(fleetv1alpha1.ApplicationCounts{Total: 2, Healthy: 1, Missing: 1, Installed: 1}))

	unknown := counts(fleetv1alpha1.ApplicationCounts{Total: 2, Unknown: 2})
	f.fleet.Set(f.Enrolment(connection.StateDegraded))
	f.reports(fleetv1alpha1.ReasonUnreachable, unknown)
	f.fleet.Set(f.Enrolment(connection.StateConnected))
	f.reports(fleetv1alpha1.ReasonWatching, counts(fleetv1alpha1.ApplicationCounts{Total: 2, Healthy: 1, Missing: 1, Installed: 1}))

	setMode := func(mode fleetv1alpha1.ApplicationsMode) {
		f.Within("editing the class", func() error {
			if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(f.Class), f.Class); err != nil {
				return err
			}
			f.Class.Spec.Applications.Mode = mode
			return f.Hub.Update(f.Ctx, f.Class)
		})
	}
	setMode(fleetv1alpha1.ApplicationsModeDisabled)
	f.reports(fleetv1alpha1.ReasonDisabled, unknown)
	setMode(fleetv1alpha1.ApplicationsModeEnabled)
	f.reports(fleetv1alpha1.ReasonWatching, counts(fleetv1alpha1.ApplicationCounts{Total: 2, Healthy: 1, Missing: 1, Installed: 1}))
}
