// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
)

// An author of Applications may try to make Flux prune what they may not delete: by owning the Kustomization that
// applied it, and deleting the Application. The objects applied in the namespace are owned, the Kustomization is not.
// The inventory also names the Application itself, which is not its own component.
func TestAKustomizationIsNotOwnedAndTheApplicationIsNotItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": f.Namespace}
	cm := f.CreateConfigMapWith("settings", labels, nil)
	k := f.kustomization(f.Namespace, "shop", "~_settings__ConfigMap", "~_shop_apps.masthead.dev_Application")
	source := appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "shop"}}
	app := f.CreateDiscovering("shop", nil, source)
	f.Edit(f.Workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.WaitForOwned(cm, app, true)
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	f.WaitForIdle()
	f.WaitForOwned(k, app, false)
	f.WaitForOwned(app, app, false)

	// By its name it is not its own either.
	self := f.CreateDiscovering("self", nil, appsv1alpha1.DiscoverySource{
		Object: &appsv1alpha1.DiscoveredObject{Group: "apps.masthead.dev", Version: "v1alpha1", Kind: "Application", Name: "self"},
	})
	f.WaitForDiscovered(self)
}

// Owned objects stay owned while it is not known whether they are discovered: a new mark first triggers a relist of the
// kind.
func TestWhatIsOwnedIsNotReleasedWhileMarksAreLookedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	cm := f.CreateConfigMapWith("settings", applicationtest.PartOfLabels("shop"), nil)
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.Edit(f.Workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.WaitForOwned(cm, app, true)
	version := cm.ResourceVersion
	f.Edit(f.Workload, app, func() {
		app.Spec.Discover.Sources = append(app.Spec.Discover.Sources, appsv1alpha1.DiscoverySource{PartOf: "another"})
	})
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ObservedGeneration != app.Generation {
			return fmt.Errorf("generation %d is observed, not %d", s.ObservedGeneration, app.Generation)
		}
		return nil
	})
	f.WaitForIdle()
	f.WaitForOwned(cm, app, true)
	if cm.ResourceVersion != version {
		t.Errorf("want the owner reference to have stayed, got version %s after %s", cm.ResourceVersion, version)
	}
}

// An Application with a misspelt or deleted release is not ready because of its other parts.
func TestAnApplicationThatDiscoversNothingIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateApplication("db", nil)
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shpo"})
	f.Edit(f.Workload, app, func() { app.Spec.Dependencies = []string{"db"} })
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionReady); s.ObservedGeneration != app.Generation || got == "True Ready" || got == "" {
			return fmt.Errorf("ready: %q", got)
		}
		return nil
	})
	f.WaitForIdle()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionReady); got[:4] == "True" {
			return fmt.Errorf("ready: %q", got)
		}
		return nil
	})
}
