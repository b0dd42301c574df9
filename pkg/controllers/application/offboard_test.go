// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
)

func (f *fixture) notEnrolled(app *appsv1alpha1.Application) {
	f.T.Helper()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False NotEnrolled" {
			return fmt.Errorf("got %q", got)
		}
		if s.Health != appsv1alpha1.HealthUnknown || s.Ready != corev1.ConditionUnknown || s.Message == "" {
			return fmt.Errorf("want nothing to be shown as live, got %s %s %q", s.Health, s.Ready, s.Message)
		}
		return nil
	})
}

// When a cluster is un-enrolled, nothing still claims to be healthy. Owned objects stay owned.
func TestLeavingTellsEveryApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	empty := f.CreateApplication("empty", nil)
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	f.WaitForHealth(empty, appsv1alpha1.HealthUnknown)
	f.WaitForIdle()

	fakefleet.Drain(f.T, f.manager.Gate, f.Cluster)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
		t.Fatal(err)
	}
	f.notEnrolled(app)
	f.notEnrolled(empty)
	f.WaitForOwned(cm, app, true)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
		t.Fatal(err)
	}
}

// The time for offboarding a cluster can run out during a request.
func TestLeavingGivesUpOnAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	f.WaitForIdle()
	fakefleet.Drain(f.T, f.manager.Gate, f.Cluster)
	ctx, cancel := context.WithCancel(f.Ctx)
	defer cancel()
	before := f.Traffic.Count()
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodPatch {
			cancel()
			<-req.Context().Done()
		}
		return nil
	})
	// If the call ended by the time limit of leaving, or of a request, the error would be an exceeded deadline.
	if err := f.fleet.Offboard(ctx, f.Cluster); !errors.Is(err, context.Canceled) {
		t.Errorf("want the error of the canceled context, got %v", err)
	}
	if got := f.Traffic.Since(before, http.MethodPatch); len(got) != 1 {
		t.Errorf("want one write to the Application, got %q", got)
	}
}

func TestAClassThatDisablesApplications(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)

	f.SetMode(fleetv1alpha1.ApplicationsModeDisabled)
	f.notEnrolled(app)
	f.WaitForIdle()
	f.Delete(f.Workload, cm)
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.restart()
	f.WaitForIdle()
	if got := f.Traffic.Since(before, controllertest.Writes()...); len(got) != 0 {
		t.Errorf("want a restart to write nothing, got %q", got)
	}
	f.notEnrolled(app)

	f.SetMode(fleetv1alpha1.ApplicationsModeEnabled)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
	f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)

	// Before the watches have ended.
	f.SetMode(fleetv1alpha1.ApplicationsModeDisabled)
	f.notEnrolled(app)
	f.SetMode(fleetv1alpha1.ApplicationsModeEnabled)
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
}

// A cluster whose connection is replaced has two instances for a while, but is reported once.
func TestAConnectionThatIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	end := f.disengage
	f.engage()
	f.WaitForIdle()
	end()
	f.Delete(f.Workload, cm)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
	f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
}
