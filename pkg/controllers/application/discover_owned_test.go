// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Whoever can write Applications wants Flux to prune what they may not delete: by owning the Kustomization that applied
// it, and deleting the Application. What it applied in the namespace is owned, the Kustomization is not. The inventory
// names the Application itself, too, which is none of its components.
func TestAKustomizationIsNotOwnedAndTheApplicationIsNotItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	f.classSays(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": f.namespace}
	cm := f.marked("settings", labels, nil)
	k := f.kustomization(f.namespace, "shop", "~_settings__ConfigMap", "~_shop_apps.masthead.dev_Application")
	source := appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "shop"}}
	app := f.discovers("shop", nil, source)
	f.Edit(f.workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.owned(cm, app, true)
	f.health(app, appsv1alpha1.HealthHealthy)
	f.settled()
	f.owned(k, app, false)
	f.owned(app, app, false)

	// By its name it is not its own either.
	self := f.discovers("self", nil, appsv1alpha1.DiscoverySource{
		Object: &appsv1alpha1.DiscoveredObject{Group: "apps.masthead.dev", Version: "v1alpha1", Kind: "Application", Name: "self"},
	})
	f.finds(self)
}

// What is owned stays owned while it is not known whether it is discovered: a mark that nobody looked for before has
// the kind listed again first.
func TestWhatIsOwnedIsNotReleasedWhileMarksAreLookedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.classSays(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	cm := f.marked("settings", partOf("shop"), nil)
	app := f.discovers("shop", discoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.Edit(f.workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.owned(cm, app, true)
	version := cm.ResourceVersion
	f.Edit(f.workload, app, func() {
		app.Spec.Discover.Sources = append(app.Spec.Discover.Sources, appsv1alpha1.DiscoverySource{PartOf: "another"})
	})
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ObservedGeneration != app.Generation {
			return fmt.Errorf("generation %d is observed, not %d", s.ObservedGeneration, app.Generation)
		}
		return nil
	})
	f.settled()
	f.owned(cm, app, true)
	if cm.ResourceVersion != version {
		t.Errorf("want the owner reference to have stayed, got version %s after %s", cm.ResourceVersion, version)
	}
}

// A release that was misspelt, or that has gone, is not ready because something else is.
func TestAnApplicationThatDiscoversNothingIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.application("db", nil)
	app := f.discovers("shop", discoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shpo"})
	f.Edit(f.workload, app, func() { app.Spec.Dependencies = []string{"db"} })
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := conditionOf(s, appsv1alpha1.ConditionReady); s.ObservedGeneration != app.Generation || got == "True Ready" || got == "" {
			return fmt.Errorf("ready: %q", got)
		}
		return nil
	})
	f.settled()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := conditionOf(s, appsv1alpha1.ConditionReady); got[:4] == "True" {
			return fmt.Errorf("ready: %q", got)
		}
		return nil
	})
}
