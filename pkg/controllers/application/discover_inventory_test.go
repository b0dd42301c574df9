// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/test/controllertest"
)

func withInventory(entries []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": entries}}}}
}

// What Flux does not write today is counted, and no more is told of it than may be seen.
func TestEntriesOfAnInventoryThatAreNotUnderstood(t *testing.T) {
	entry := func(id, version any) any { return map[string]any{"id": id, "v": version} }
	good, long := entry("ns_web__Service", "v1"), strings.Repeat("x", 1200)
	for name, tc := range map[string]struct {
		reason  string
		entries []any
		kept    int
		want    string
	}{
		"None":        {"All of it is understood.", []any{good, entry("_admin_rbac.authorization.k8s.io_ClusterRole", "v1")}, 2, ""},
		"NoVersion":   {"An object has a version.", []any{good, entry("ns_web__Service", "")}, 1, "1 of 2 ... The first is number 2: \"ns_web__Service\"."},
		"NoKind":      {"The first is told, and all are counted.", []any{entry("ns_a", "v1"), good, entry("ns_b", "v1")}, 1, "2 of 3 ... The first is number 1: \"ns_a\"."},
		"Elsewhere":   {"Of another namespace nothing is told.", []any{entry("secret_a", "v1")}, 0, "1 of 1 ... The first is number 1."},
		"NoNamespace": {"Nor of what has none.", []any{entry("_a", "v1"), entry("a", "v1"), entry("ns/a", "v1")}, 0, "3 of 3 ... The first is number 1."},
		"NoText":      {"Whatever it is.", []any{int64(7), nil, entry(int64(7), true), map[string]any{}, good}, 1, "4 of 5 ... The first is number 1."},
		"Long":        {"It is bounded.", []any{entry("ns_"+long+"__Service", "v1")}, 0, "1 of 1 ... The first is number 1: \"ns_" + long[:60] + "…\"."},
		"Cleaned":     {"It moves no cursor.", []any{entry("ns_\x1b[2J\n", "v1")}, 0, "1 of 1 ... The first is number 1: \"ns_ [2J\"."},
	} {
		t.Run(name, func(t *testing.T) {
			got := inventoryIn(kustomizationGVK.GroupKind(), withInventory(tc.entries))
			if got == nil || len(got.entries) != tc.kept {
				t.Fatalf("%s Want %d entries to be followed, got %+v", tc.reason, tc.kept, got)
			}
			said := ""
			if p := got.strange.problem("infra", sight{own: "ns"}.namespace); p != nil {
				said = strings.Replace(p.Message,
					"entries of the inventory of \"infra\" are not understood, so it is not known how what they name fares.", "...", 1)
			}
			if said != tc.want {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, said)
			}
			if again := inventoryIn(kustomizationGVK.GroupKind(), withInventory(tc.entries)); !got.equal(again) {
				t.Error("want equal inventories to be equal")
			}
		})
	}
	many := make([]any, 0, appsv1alpha1.MaxDiscovered+2)
	for i := range appsv1alpha1.MaxDiscovered + 1 {
		many = append(many, entry(fmt.Sprintf("ns_web-%d__Service", i), "v1"))
	}
	got := inventoryIn(kustomizationGVK.GroupKind(), withInventory(append(many, nil)))
	if !got.more || got.strange.count != 1 || len(got.entries) != appsv1alpha1.MaxDiscovered {
		t.Errorf("want what is beyond the bound to be counted too, got %d, %t, %+v", len(got.entries), got.more, got.strange)
	}
}

// An inventory that is not understood, or not wholly seen, keeps an Application from being healthy, also for the moment
// after a restart in which it has not been read.
func TestAnInventoryThatIsNotUnderstoodIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": f.namespace}
	f.marked("settings", labels, nil)
	k := f.kustomization(f.namespace, "shop", "~_settings__ConfigMap", "~_strange", "~-victim_secret-name__ConfigMap")
	app := f.discovers("shop", nil, appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "shop"}})
	f.finds(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy", "Kustomization/~/ Unknown InventoryNotUnderstood", "Namespace// Unknown NotAllowed")
	f.health(app, appsv1alpha1.HealthUnknown)
	if got := conditionOf(app.Status, appsv1alpha1.ConditionStalled); got != "True InventoryNotUnderstood" {
		t.Errorf("want somebody to be told to do something, got %q", got)
	}
	for _, c := range app.Status.Conditions {
		if c.Type == appsv1alpha1.ConditionComponentsWatched && !strings.Contains(c.Message, fmt.Sprintf("1 of 3 entries of the inventory of \"shop\" are not understood, so it is not known how what they name fares. The first is number 2: \"%s_strange\".", f.namespace)) {
			t.Errorf("want the condition to count them and to name the first, got %s", c.Message)
		}
	}
	f.settled()
	before := f.asked.Count()
	f.restart()
	f.Within("the inventory is read, and the Application is looked at", func() error { return f.looked(app.Name) })
	f.settled()
	for _, request := range f.asked.Since(before, controllertest.Writes()...) {
		t.Errorf("after a restart nothing is written, got %s", request)
	}
	f.applied(k, "~_settings__ConfigMap")
	f.finds(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy")
	f.health(app, appsv1alpha1.HealthHealthy)
}
