// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// markedObject is an object with labels and annotations.
func markedObject(apiVersion, kind, namespace, name string, labels, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u
}

func TestMarksOfAnObjectAreThoseOfItsSource(t *testing.T) {
	release := &appsv1alpha1.DiscoveredRelease{Name: "shop", Namespace: "flux"}
	argo := appsv1alpha1.DiscoverySource{ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop"}}
	elsewhere := appsv1alpha1.DiscoverySource{ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop", Namespace: "teams"}}
	helm := appsv1alpha1.DiscoverySource{HelmRelease: release}
	for _, tc := range []struct {
		name, reason        string
		source              appsv1alpha1.DiscoverySource
		labels, annotations map[string]string
		kind, namespace     string
		want                bool
	}{
		{name: "part of", reason: "The label says so.", source: appsv1alpha1.DiscoverySource{PartOf: "shop"}, labels: map[string]string{"app.kubernetes.io/part-of": "shop"}, want: true},
		{name: "part of another", reason: "Labels are compared whole.", source: appsv1alpha1.DiscoverySource{PartOf: "shop"}, labels: map[string]string{"app.kubernetes.io/part-of": "shop2"}},
		{name: "instance", reason: "The label says so.", source: appsv1alpha1.DiscoverySource{Instance: "shop"}, labels: map[string]string{"app.kubernetes.io/instance": "shop"}, want: true},
		{name: "instance is not part of", reason: "Two labels are two things.", source: appsv1alpha1.DiscoverySource{Instance: "shop"}, labels: map[string]string{"app.kubernetes.io/part-of": "shop"}},
		{name: "Helm", reason: "Helm writes both.", source: helm, annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "flux"}, want: true},
		{name: "Helm, another namespace", reason: "Releases of one name are distinguished by namespace.", source: helm, annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "ns"}},
		{name: "Helm, half", reason: "One annotation alone may have been copied.", source: helm, annotations: map[string]string{"meta.helm.sh/release-name": "shop"}},
		{
			name: "Flux, Kustomization", reason: "kustomize-controller labels all that it applies.", source: appsv1alpha1.DiscoverySource{FluxKustomization: release}, want: true,
			labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux"},
		},
		{
			name: "Flux, HelmRelease", reason: "helm-controller labels all that it renders.", source: appsv1alpha1.DiscoverySource{FluxHelmRelease: release}, want: true,
			labels: map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux"},
		},
		{
			name: "Flux, the other one", reason: "A Kustomization and a HelmRelease can have one name.", source: appsv1alpha1.DiscoverySource{FluxHelmRelease: release},
			labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux"},
		},
		{name: "Argo CD", reason: "The ID is about the object.", source: argo, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:ns/web"}, want: true},
		{name: "Argo CD, an Application elsewhere", reason: "Argo CD puts the namespace before the name.", source: elsewhere, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "teams_shop:apps/Deployment:ns/web"}, want: true},
		{name: "Argo CD, copied", reason: "A controller copied the annotation to what it made.", source: argo, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:ns/parent"}},
		{name: "Argo CD, another kind", reason: "As above.", source: argo, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/StatefulSet:ns/web"}},
		{name: "Argo CD, another namespace", reason: "As above.", source: argo, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:other/web"}},
		{name: "Argo CD, no namespace", reason: "The ID has the destination's.", source: argo, kind: "ClusterThing", namespace: "-", annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/ClusterThing:dest/web"}, want: true},
		{name: "Argo CD, nonsense", reason: "Anybody can write an annotation.", source: argo, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop"}},
		{name: "Argo CD, by label", reason: "Argo CD can be configured to track by label.", source: argo, labels: map[string]string{"argocd.argoproj.io/instance": "shop"}, want: true},
		{
			name: "Argo CD, by both", reason: "The label is only for information then.", source: argo, labels: map[string]string{"argocd.argoproj.io/instance": "shop"},
			annotations: map[string]string{"argocd.argoproj.io/tracking-id": "cart:apps/Deployment:ns/web"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kind, namespace := "Deployment", "ns"
			if tc.kind != "" {
				kind = tc.kind
			}
			if tc.namespace == "-" {
				namespace = ""
			}
			borne := marksOfObject(schema.GroupKind{Group: "apps", Kind: kind}, markedObject("apps/v1", kind, namespace, "web", tc.labels, tc.annotations), false)
			got := slices.ContainsFunc(MarksOfSource(tc.source, "ns", namespace), func(m Mark) bool { return slices.Contains(borne, m) })
			if got != tc.want {
				t.Errorf("%s: want %t, got %t: %q", tc.reason, tc.want, got, borne)
			}
		})
	}
}

// Labels and annotations of an object with a controller are copies, or would be counted beside what its controller
// says.
func TestMarksOfAnObjectWithAController(t *testing.T) {
	release := &appsv1alpha1.DiscoveredRelease{Name: "shop", Namespace: "flux"}
	argo := appsv1alpha1.DiscoverySource{ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop"}}
	for name, tc := range map[string]struct {
		reason              string
		source              appsv1alpha1.DiscoverySource
		labels, annotations map[string]string
		want                bool
	}{
		"PartOf":   {"Charts label templates.", appsv1alpha1.DiscoverySource{PartOf: "shop"}, map[string]string{"app.kubernetes.io/part-of": "shop"}, nil, false},
		"Instance": {"Charts label templates.", appsv1alpha1.DiscoverySource{Instance: "shop"}, map[string]string{"app.kubernetes.io/instance": "shop"}, nil, false},
		"Helm": {
			"A Deployment's annotations are copied to its ReplicaSets.", appsv1alpha1.DiscoverySource{HelmRelease: release}, nil,
			map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "flux"}, false,
		},
		"ArgoByLabel": {"Some controllers copy all labels.", argo, map[string]string{"argocd.argoproj.io/instance": "shop"}, nil, false},
		"ArgoByID": {
			"The ID is about the object: Argo CD applied it, and a controller adopted it.", argo, nil,
			map[string]string{"argocd.argoproj.io/tracking-id": "shop:batch/Job:ns/web"}, true,
		},
		"Kustomization": {
			"An inventory that names it is looked up by the mark.", appsv1alpha1.DiscoverySource{FluxKustomization: release},
			map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux"}, nil, true,
		},
		"HelmRelease": {
			"As above.", appsv1alpha1.DiscoverySource{FluxHelmRelease: release},
			map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux"}, nil, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := markedObject("batch/v1", "Job", "ns", "web", tc.labels, tc.annotations)
			borne := marksOfObject(schema.GroupKind{Group: "batch", Kind: "Job"}, obj, true)
			got := slices.ContainsFunc(MarksOfSource(tc.source, "ns", "ns"), func(m Mark) bool { return slices.Contains(borne, m) })
			if got != tc.want || borne[0] != objectMark(schema.GroupKind{Group: "batch", Kind: "Job"}, types.NamespacedName{Namespace: "ns", Name: "web"}) {
				t.Errorf("%s Want %t, and its own name always, got %t: %q", tc.reason, tc.want, got, borne)
			}
		})
	}
}

func TestInventoryEntries(t *testing.T) {
	for _, tc := range []struct {
		id, reason string
		gvk        schema.GroupVersionKind
		key        types.NamespacedName
		bad        bool
	}{
		{id: "ns_web_apps_Deployment", reason: "As Flux writes it.", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, key: types.NamespacedName{Namespace: "ns", Name: "web"}},
		{id: "ns_web__Service", reason: "The core group is empty.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, key: types.NamespacedName{Namespace: "ns", Name: "web"}},
		{id: "_ns__Namespace", reason: "Without a namespace.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, key: types.NamespacedName{Name: "ns"}},
		{
			id: "_system__reader_rbac.authorization.k8s.io_ClusterRole", reason: "A colon is written as two underscores.",
			gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, key: types.NamespacedName{Name: "system:reader"},
		},
		{id: "", reason: "Nothing.", bad: true},
		{id: "a_b", reason: "Too short.", bad: true},
		{id: "a_b_c", reason: "No group.", bad: true},
		{id: "ns___Service", reason: "No name.", bad: true},
		{id: "ns_web_apps_", reason: "No kind.", bad: true},
	} {
		gvk, key, ok := InventoryEntry{id: tc.id, version: "v1"}.Object()
		if ok == tc.bad || ok && (gvk != tc.gvk || key != tc.key) {
			t.Errorf("%q: %s got %v %v %t", tc.id, tc.reason, gvk, key, ok)
		}
	}
}

// Anyone who can write the status of a Kustomization decides its size and shape.
func TestAnInventoryCannotFillTheMemory(t *testing.T) {
	long := markedObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "ns", "shop", nil, nil)
	var entries []any
	for i := range 3 * appsv1alpha1.MaxDiscovered {
		entries = append(entries, map[string]any{"id": "ns_cm" + strconv.Itoa(i) + "__ConfigMap", "v": "v1"}, "nonsense", nil, map[string]any{"id": 7})
	}
	if err := unstructured.SetNestedSlice(long.Object, entries[:0], "status", "inventory", "entries"); err != nil {
		t.Fatal(err)
	}
	long.Object["status"] = map[string]any{"inventory": map[string]any{"entries": entries}}
	got := inventoryIn(KustomizationGVK.GroupKind(), long)
	if got == nil || len(got.Entries) != appsv1alpha1.MaxDiscovered || !got.More {
		t.Errorf("want %d entries and more, got %+v", appsv1alpha1.MaxDiscovered, got)
	}
	if got := inventoryIn(schema.GroupKind{Kind: "ConfigMap"}, long); got != nil {
		t.Errorf("want no inventory of another kind, got %+v", got)
	}
	for _, status := range []any{nil, "x", map[string]any{"inventory": 1}, map[string]any{"inventory": map[string]any{"entries": "x"}}} {
		long.Object["status"] = status
		if got := inventoryIn(KustomizationGVK.GroupKind(), long); got != nil {
			t.Errorf("status %v: want no inventory, got %+v", status, got)
		}
	}
}

func TestSight(t *testing.T) {
	p := Policy{Visibility: []fleetv1alpha1.ApplicationVisibility{
		{From: []string{"a", "b"}, Namespaces: []string{"shared"}},
		{From: []string{"b"}, ClusterScoped: []fleetv1alpha1.ReferencedResource{
			{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "example.org", Resource: "*"},
		}},
	}}
	roles := kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io"}, Resource: "clusterroles", ClusterScoped: true}
	bindings := roles
	bindings.Resource = "clusterrolebindings"
	things := kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.org"}, Resource: "things", ClusterScoped: true}
	for _, tc := range []struct {
		own, reason             string
		namespaces              []string
		roles, bindings, things bool
	}{
		{own: "a", reason: "Its own, and what is listed for it.", namespaces: []string{"a", "shared"}},
		{own: "b", reason: "Several entries add up.", namespaces: []string{"b", "shared", ""}, roles: true, things: true},
		{own: "shared", reason: "To be seen is not to see.", namespaces: []string{"shared"}},
		{own: "c", reason: "Nothing is listed for it.", namespaces: []string{"c"}},
	} {
		s := Visibility{Own: tc.own, Policy: p}
		if diff := cmp.Diff(tc.namespaces, s.Namespaces([]string{"shared", "secret", tc.own})); diff != "" {
			t.Errorf("%s: %s -want +got:\n%s", tc.own, tc.reason, diff)
		}
		if s.ClusterScoped(roles) != tc.roles || s.ClusterScoped(bindings) != tc.bindings || s.ClusterScoped(things) != tc.things {
			t.Errorf("%s: %s cluster-scoped kinds are wrong", tc.own, tc.reason)
		}
		if s.Namespace("") || s.Namespace("secret") {
			t.Errorf("%s sees what is not listed", tc.own)
		}
	}
}

func TestMarksWantedAreThoseThatMayBeSeen(t *testing.T) {
	app := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "shop"}}
	if got := MarksWanted(app, Visibility{Own: "a"}); got != nil {
		t.Errorf("want nothing without spec.discover, got %q", got)
	}
	app.Spec.Discover = &appsv1alpha1.Discovery{
		Namespaces: []string{"shared", "secret"},
		Sources: []appsv1alpha1.DiscoverySource{
			{PartOf: "shop"}, {PartOf: "shop"},
			{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "infra", Namespace: "secret"}},
			{FluxHelmRelease: &appsv1alpha1.DiscoveredRelease{Name: "web"}},
			{Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Service", Namespace: "secret", Name: "db"}},
			{Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Service", Name: "db"}},
		},
	}
	p := Policy{Visibility: []fleetv1alpha1.ApplicationVisibility{{From: []string{"a"}, Namespaces: []string{"shared"}}}}
	want := []Mark{
		"helm-release/a/a/web", "helm-release/shared/a/web",
		"kustomization/a/secret/infra", "kustomization/shared/secret/infra",
		"object/a//Service/db", "object/a/helm.toolkit.fluxcd.io/HelmRelease/web",
		"part-of/a/shop", "part-of/shared/shop",
	}
	if diff := cmp.Diff(want, MarksWanted(app, Visibility{Own: "a", Policy: p})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWantedMarks(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	w := NewWantedMarks(clk)
	a, b := ApplicationKey{Namespace: "ns", Name: "a"}, ApplicationKey{Namespace: "ns", Name: "b"}
	obj := markedObject("v1", "ConfigMap", "ns", "cm", map[string]string{appsv1alpha1.PartOfLabel: "shop"}, nil)
	gk := schema.GroupKind{Kind: "ConfigMap"}
	shop := newMark(markPartOf, "ns", "shop")

	if w.on(gk, obj, false) != nil {
		t.Error("want nothing to be kept without a wanted mark")
	}
	first, _, ok := w.Want(a, []Mark{shop})
	if !ok || first != w.Current() || w.on(gk, obj, false) == nil {
		t.Errorf("want the mark to be looked for since now, got %d %t", first, ok)
	}
	if again, _, _ := w.Want(b, []Mark{shop}); again != first {
		t.Errorf("nothing is listed again for a mark that is looked for already: want %d, got %d", first, again)
	}
	if got := w.Users([]Mark{shop}); len(got) != 2 {
		t.Errorf("want both Applications, got %v", got)
	}
	later, _, _ := w.Want(b, []Mark{newMark(markPartOf, "ns", "x"), shop})
	if later != first+1 {
		t.Errorf("want a new generation for a new mark, got %d", later)
	}
	w.Want(a, nil)
	w.Want(b, nil)
	if w.on(gk, obj, false) != nil || len(w.marks) != 0 || len(w.by) != 0 {
		t.Errorf("want nothing to be left, got %v %v", w.marks, w.by)
	}
	many := make([]Mark, 0, maxWanted+1)
	for i := range maxWanted + 1 {
		many = append(many, Mark(fmt.Sprint(i)))
	}
	if _, _, ok := w.Want(a, many); ok || len(w.marks) != 0 {
		t.Errorf("want no more marks than there may be, got %d", len(w.marks))
	}
	if _, _, ok := w.Want(a, many[:maxWantedOfNamespace]); !ok {
		t.Error("want the Applications of a namespace to have its share")
	}
	if _, _, ok := w.Want(b, []Mark{shop}); ok {
		t.Error("want a namespace to have no more than its share")
	}
	other := ApplicationKey{Namespace: "other", Name: "a"}
	if _, _, ok := w.Want(other, []Mark{newMark(markPartOf, "other", "shop")}); !ok {
		t.Error("want what one namespace looks for to leave room for others")
	}
	if _, _, ok := w.Want(a, many); ok || len(w.by[a]) != maxWantedOfNamespace {
		t.Errorf("want what was looked for before to be looked for still, got %d", len(w.by[a]))
	}
	for i := range 2 * MaxUsesOfMark {
		if _, leftOut, ok := w.Want(ApplicationKey{Namespace: fmt.Sprint("n", i), Name: "a"}, []Mark{shop}); !ok || len(leftOut) > 0 {
			t.Fatalf("Application %d: want each namespace to look for the mark, got %t, without %q", i, ok, leftOut)
		}
	}
	for key := range w.by {
		w.Want(key, nil)
	}
	if len(w.marks) != 0 || len(w.by) != 0 || len(w.uses) != 0 {
		t.Errorf("want nothing to be left, got %d %d %v", len(w.marks), len(w.by), w.uses)
	}
	if !w.MayRelist(gk) {
		t.Error("the first list is not waited for")
	}
	if w.MayRelist(gk) || !w.MayRelist(schema.GroupKind{Kind: "Service"}) {
		t.Error("want the next one of the kind to wait, and no other kind")
	}
	clk.Step(relistEvery)
	if !w.MayRelist(gk) {
		t.Error("it does not wait for longer")
	}
}

// A namespace with many Applications looking for a mark blocks no one else: neither another namespace looking for the
// same mark of cluster-scoped objects, nor its own Application that also looks for other marks.
func TestBlockDiscoveryOfOthersByManyApplicationsThatLookForTheSame(t *testing.T) {
	w := NewWantedMarks(clocktesting.NewFakeClock(time.Now()))
	shop, own := newMark(markPartOf, "", "shop"), newMark(markPartOf, "x", "mine")
	attacker := func(i int) ApplicationKey { return ApplicationKey{Namespace: "x", Name: fmt.Sprint("a", i)} }
	for i := range MaxUsesOfMark {
		if _, leftOut, ok := w.Want(attacker(i), []Mark{shop}); !ok || len(leftOut) > 0 {
			t.Fatalf("Application %d: want it to look for the mark, got %t, without %q", i, ok, leftOut)
		}
	}
	victim := ApplicationKey{Namespace: "z", Name: "shop"}
	if _, leftOut, ok := w.Want(victim, []Mark{shop}); !ok || len(leftOut) > 0 || !slices.Contains(w.Users([]Mark{shop}), victim) {
		t.Errorf("want another namespace to look for the same, got %t, without %q", ok, leftOut)
	}
	for range 2 {
		_, leftOut, ok := w.Want(attacker(MaxUsesOfMark), []Mark{own, shop})
		if !ok || !slices.Equal(leftOut, []Mark{shop}) || !slices.Equal(w.by[attacker(MaxUsesOfMark)], []Mark{own}) {
			t.Errorf("want what too many look for to be left out, and nothing else, got %t, without %q", ok, leftOut)
		}
	}
	w.Want(attacker(0), nil)
	if _, leftOut, ok := w.Want(attacker(MaxUsesOfMark), []Mark{own, shop}); !ok || len(leftOut) > 0 {
		t.Errorf("want it to be looked for as soon as there is room, got %t, without %q", ok, leftOut)
	}
	for key := range w.by {
		w.Want(key, nil)
	}
	if len(w.marks)+len(w.by)+len(w.uses) > 0 {
		t.Errorf("want nothing to be left, got %v %v %v", w.marks, w.by, w.uses)
	}
}

func TestAMarkedRecord(t *testing.T) {
	one := &markedComponent{Component: Component{References: 1}, Markings: &Markings{Marks: []Mark{"m"}, Inventory: &Inventory{Entries: []InventoryEntry{{"ns_a__B", "v1"}}}}}
	same := &markedComponent{Component: Component{References: 1}, Markings: &Markings{Marks: []Mark{"m"}, Inventory: &Inventory{Entries: []InventoryEntry{{"ns_a__B", "v1"}}}}}
	if !one.Equal(same) || one.Equal(&one.Component) {
		t.Error("equal records must be equal, and only these")
	}
	same.Inventory.Entries[0].version = "v2"
	if one.Equal(same) {
		t.Error("another inventory is another record")
	}
	if !slices.Contains(one.IndexKeys(), "m") || one.Size() <= one.Component.Size() {
		t.Errorf("marks must be found and be paid for: %q %d", one.IndexKeys(), one.Size())
	}
}
