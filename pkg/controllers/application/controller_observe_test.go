// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

// mayRead gives a user the right to read everything, and to write the status of Applications.
func (f *fixture) mayRead(user string) {
	f.T.Helper()
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: read},
		{APIGroups: []string{"apps.masthead.dev"}, Resources: []string{"applications/status"}, Verbs: []string{"patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	f.Create(f.Workload, role, binding)
	f.T.Cleanup(func() {
		f.Delete(f.Workload, binding)
		f.Delete(f.Workload, role)
	})
}

// In ObserveOnly mode, Masthead needs only the rights to read components and to write the status of Applications, and
// requests nothing else.
func TestObserveOnlyNeedsNoRightToWriteComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed() // An administrator has installed the definition.
	f.stop()
	f.User = "observer-of-" + f.Namespace
	f.mayRead(f.User)
	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.Mode, s.DiscoveredOwnership = fleetv1alpha1.ApplicationsModeObserveOnly, fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	before := f.Traffic.Count()
	f.start()

	named, found := f.CreateConfigMap("settings", "shop"), f.CreateConfigMapWith("found", applicationtest.PartOfLabels("shop"), nil)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"), func(app *appsv1alpha1.Application) {
		app.Spec.Discover = &appsv1alpha1.Discovery{
			Sources: []appsv1alpha1.DiscoverySource{{PartOf: "shop"}}, Kinds: applicationtest.DiscoveredConfigMaps, Ownership: appsv1alpha1.DiscoveryOwnershipOwned,
		}
	})
	checked := f.CreateApplication("checked", applicationtest.Components(applicationtest.ConfigMaps, "settings"), func(app *appsv1alpha1.Application) {
		app.Spec.HealthCheck = &appsv1alpha1.ApplicationHealthCheck{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "check", Image: "busybox", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
		}}}}}
	})
	f.WaitForDiscovered(app, "ConfigMap/~/found Healthy")
	f.WaitForInstalled(app, "settings")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched) + ", " + applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionReady); got != "True Watched, True Ready" {
		t.Errorf("want nothing to be missing, got %s", got)
	}
	if len(app.Status.OwnedKinds) > 0 {
		t.Errorf("want nothing to be owned, got %v", app.Status.OwnedKinds)
	}
	f.WaitForStatus(checked, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionHealthCheckPassed); got != "Unknown ObserveOnly" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	// It follows changes, and the end of an Application as well.
	f.Edit(f.Workload, named, func() { named.Annotations = nil })
	f.WaitForInstalled(app)
	f.Edit(f.Workload, named, func() { named.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "shop"} })
	f.WaitForInstalled(app, "settings")
	f.WaitForIdle()
	f.WaitForOwned(named, app, false)
	f.WaitForOwned(found, app, false)
	f.Delete(f.Workload, checked)
	f.WaitForIdle()
	for _, request := range f.Traffic.Since(before, controllertest.Writes()...) {
		if !strings.HasSuffix(request, "/status") && !strings.HasSuffix(request, "/events") {
			t.Errorf("who observes only writes nothing but the status of Applications, got %s", request)
		}
	}
}

// Owned objects stay owned in ObserveOnly mode; outdated references are removed when it ends.
func TestObserveOnlyLeavesReferencesAsTheyAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(cm, app, true)
	f.SetMode(fleetv1alpha1.ApplicationsModeObserveOnly)
	f.Within("the mode counts", func() error {
		if w, ok := f.reconciler.workloads.Get(f.Cluster); !ok || !w.VisibilityIn(f.Namespace).ObserveOnly {
			return errors.New("it does not yet")
		}
		return nil
	})
	f.Edit(f.Workload, cm, func() { cm.Annotations = nil })
	f.WaitForInstalled(app)
	f.WaitForIdle()
	f.WaitForOwned(cm, app, true)
	f.WaitForOwnedKinds(app, "ConfigMap")
	f.SetMode(fleetv1alpha1.ApplicationsModeEnabled)
	f.WaitForOwned(cm, app, false)
}

func TestAChangeOfHealthIsReportedAndRemembered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	f.Delete(f.Workload, cm)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
	var got []appsv1alpha1.Health
	for _, c := range app.Status.History {
		got = append(got, c.Health)
	}
	if len(got) < 3 || fmt.Sprint(got[:3]) != "[Missing Healthy Missing]" {
		t.Errorf("want the latest change first, got %v", got)
	}
	if c := app.Status.History[0]; c.Time.IsZero() || !strings.Contains(c.Message, "settings") || app.Status.History[1].Message != "" {
		t.Errorf("want the time and what was wrong, got %+v", app.Status.History)
	}
	f.Within("the Events", func() error {
		var list eventsv1.EventList
		if err := f.Workload.List(f.Ctx, &list, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		reported := map[string]string{}
		for _, e := range list.Items {
			if e.Regarding.UID == app.UID && e.Reason == appsv1alpha1.ReasonHealthChanged {
				reported[e.Action] = e.Type
			}
		}
		if len(reported) != 2 || reported["BecomeHealthy"] != "Normal" || reported["BecomeMissing"] != "Warning" {
			return fmt.Errorf("got %v", reported)
		}
		return nil
	})
	f.WaitForIdle()
	history := app.Status.History
	f.restart()
	f.WaitForIdle()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if len(s.History) != len(history) {
			return errors.New("a restart is no change of health")
		}
		return nil
	})
}
