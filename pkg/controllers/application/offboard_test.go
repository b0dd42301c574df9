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
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
)

func (f *fixture) notEnrolled(app *appsv1alpha1.Application) {
	f.T.Helper()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := formatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False NotEnrolled" {
			return fmt.Errorf("got %q", got)
		}
		if s.Health != appsv1alpha1.HealthUnknown || s.Ready != corev1.ConditionUnknown || s.Message == "" {
			return fmt.Errorf("want nothing to be shown as live, got %s %s %q", s.Health, s.Ready, s.Message)
		}
		return nil
	})
}

func (f *fixture) mode(mode fleetv1alpha1.ApplicationsMode) {
	f.T.Helper()
	f.Within("the class is changed", func() error {
		if err := f.hub.Get(f.Ctx, types.NamespacedName{Name: f.class.Name}, f.class); err != nil {
			return err
		}
		f.class.Spec.Applications.Mode = mode
		return f.hub.Update(f.Ctx, f.class)
	})
}

// When a cluster is un-enrolled, nothing still claims to be healthy. Owned objects stay owned.
func TestLeavingTellsEveryApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	empty := f.application("empty", nil)
	cm := f.configMap("settings", "shop")
	f.health(app, appsv1alpha1.HealthHealthy)
	f.health(empty, appsv1alpha1.HealthUnknown)
	f.settled()

	fakefleet.Drain(f.T, f.manager.Gate, f.cluster)
	if err := f.fleet.Offboard(f.Ctx, f.cluster); err != nil {
		t.Fatal(err)
	}
	f.notEnrolled(app)
	f.notEnrolled(empty)
	f.owned(cm, app, true)
	if err := f.fleet.Offboard(f.Ctx, f.cluster); err != nil {
		t.Fatal(err)
	}
}

// The time for offboarding a cluster can run out during a request.
func TestLeavingGivesUpOnAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	f.has(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	f.settled()
	fakefleet.Drain(f.T, f.manager.Gate, f.cluster)
	ctx, cancel := context.WithCancel(f.Ctx)
	defer cancel()
	before := f.traffic.Count()
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodPatch {
			cancel()
			<-req.Context().Done()
		}
		return nil
	})
	// If the call ended by the time limit of leaving, or of a request, the error would be an exceeded deadline.
	if err := f.fleet.Offboard(ctx, f.cluster); !errors.Is(err, context.Canceled) {
		t.Errorf("want the error of the canceled context, got %v", err)
	}
	if got := f.traffic.Since(before, http.MethodPatch); len(got) != 1 {
		t.Errorf("want one write to the Application, got %q", got)
	}
}

func TestAClassThatDisablesApplications(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	cm := f.configMap("settings", "shop")
	f.health(app, appsv1alpha1.HealthHealthy)

	f.mode(fleetv1alpha1.ApplicationsModeDisabled)
	f.notEnrolled(app)
	f.settled()
	f.Delete(f.workload, cm)
	f.settled()
	before := f.traffic.Count()
	f.restart()
	f.settled()
	if got := f.traffic.Since(before, controllertest.Writes()...); len(got) != 0 {
		t.Errorf("want a restart to write nothing, got %q", got)
	}
	f.notEnrolled(app)

	f.mode(fleetv1alpha1.ApplicationsModeEnabled)
	f.health(app, appsv1alpha1.HealthMissing)
	f.configMap("settings", "shop")
	f.health(app, appsv1alpha1.HealthHealthy)

	// Before the watches have ended.
	f.mode(fleetv1alpha1.ApplicationsModeDisabled)
	f.notEnrolled(app)
	f.mode(fleetv1alpha1.ApplicationsModeEnabled)
	f.health(app, appsv1alpha1.HealthHealthy)
}

// A cluster whose connection is replaced has two instances for a while, but is reported once.
func TestAConnectionThatIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	cm := f.configMap("settings", "shop")
	f.health(app, appsv1alpha1.HealthHealthy)
	end := f.disengage
	f.engage()
	f.settled()
	end()
	f.Delete(f.workload, cm)
	f.health(app, appsv1alpha1.HealthMissing)
	f.configMap("settings", "shop")
	f.health(app, appsv1alpha1.HealthHealthy)
}
