// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"strings"
	"testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

// An inventory that is not understood, or not fully visible, keeps an Application from being healthy, even before it
// has been read after a restart.
func TestAnInventoryThatIsNotUnderstoodIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": f.Namespace}
	f.CreateConfigMapWith("settings", labels, nil)
	k := f.kustomization(f.Namespace, "shop", "~_settings__ConfigMap", "~_strange", "~-victim_secret-name__ConfigMap")
	app := f.CreateDiscovering("shop", nil, appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "shop"}})
	f.WaitForDiscovered(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy", "Kustomization/~/ Unknown InventoryNotUnderstood", "Namespace// Unknown NotAllowed")
	f.WaitForHealth(app, appsv1alpha1.HealthUnknown)
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionStalled); got != "True InventoryNotUnderstood" {
		t.Errorf("want the Application to be stalled, got %q", got)
	}
	for _, c := range app.Status.Conditions {
		if c.Type == appsv1alpha1.ConditionComponentsWatched && !strings.Contains(c.Message, fmt.Sprintf("1 of 3 entries of the inventory of \"shop\" are not understood, so the health of what they name is unknown. The first is number 2: \"%s_strange\".", f.Namespace)) {
			t.Errorf("want the condition to count them and to name the first, got %s", c.Message)
		}
	}
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.restart()
	f.Within("the inventory is read, and the Application is looked at", func() error { return f.looked(app.Name) })
	f.WaitForIdle()
	for _, request := range f.Traffic.Since(before, controllertest.Writes()...) {
		t.Errorf("after a restart nothing is written, got %s", request)
	}
	f.SetInventory(k, "~_settings__ConfigMap")
	f.WaitForDiscovered(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
}
