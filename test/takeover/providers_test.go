// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// guard is one of the things that keep a provider of Cluster API away from an imported cluster.
type guard struct {
	name string
	// rules are texts in the messages of the admission rules that keep the guard in place, or are the guard.
	rules []string
	// remove takes the guard off an object.
	remove func(*unstructured.Unstructured)
}

func guards() []guard {
	keep := func(*unstructured.Unstructured) {}
	return []guard{
		{name: "annotation managed-by", rules: []string{"managed-by"}, remove: func(o *unstructured.Unstructured) {
			dropAnnotation(o, imported.ManagedByAnnotation)
		}},
		{name: "annotation paused", rules: []string{"paused"}, remove: func(o *unstructured.Unstructured) {
			dropAnnotation(o, imported.PausedAnnotation)
		}},
		{name: "identity that is refused", rules: []string{"must name an identity", "identity of an imported object"}, remove: func(o *unstructured.Unstructured) {
			for _, field := range []string{"identityRef", "credentialsRef"} {
				if _, found, _ := unstructured.NestedMap(o.Object, "spec", field); found {
					_ = unstructured.SetNestedField(o.Object, "usable", "spec", field, "name")
				}
			}
		}},
		{name: "policy: no finalizer", rules: []string{"finalizer"}, remove: keep},
		{name: "policy: deletion only in the background", rules: []string{"propagation policy"}, remove: keep},
	}
}

func dropAnnotation(object *unstructured.Unstructured, key string) {
	annotations := object.GetAnnotations()
	delete(annotations, key)
	object.SetAnnotations(annotations)
}

// TestProviders removes each guard by itself and makes the providers reconcile every object, then deletes it in the
// foreground. As long as one of the guards on a path exists, no provider reaches its cloud.
func TestProviders(t *testing.T) {
	all := guards()
	rows := [][]guard{{}}
	for _, one := range all {
		rows = append(rows, []guard{one})
	}
	// These rows show which of the guards hold when several are removed, and that harm is done when none is left.
	rows = append(rows, []guard{all[1], all[2]}, []guard{all[1], all[3], all[4]}, []guard{all[2], all[3], all[4]}, all)

	createUsableIdentities(t)
	found := &table{name: "providers", header: []string{
		"Guard removed", "Still safe?", "CAPA: reconciled", "CAPA: deleted", "CAPZ: reconciled", "CAPZ: deleted", "CAPG: reconciled", "CAPG: deleted",
	}}
	for i, removed := range rows {
		names, rules := []string{}, []string{}
		for _, guard := range removed {
			names, rules = append(names, guard.name), append(rules, guard.rules...)
		}
		name := strings.Join(names, " + ")
		switch len(removed) {
		case 0:
			name = "none"
		case len(all):
			name = "all"
		}
		t.Run(name, func(t *testing.T) {
			s := scope{name: "row" + string(rune('a'+i))}
			s.install(t, rules...)
			cells := []string{}
			for _, provider := range emulators() {
				reconciled, deleted := provider.outcomes(t, s, removed)
				cells = append(cells, reconciled, deleted)
			}
			safe := !slices.Contains(cells, outcomeUpdated) && !slices.Contains(cells, outcomeDeleted)
			verdict := "yes"
			if !safe {
				verdict = "**no**"
			}
			found.add(append([]string{name, verdict}, cells...)...)
			if len(removed) <= 1 && !safe {
				t.Errorf("one guard was removed (%s) and the cloud was reached: %v", name, cells)
			}
			if len(removed) == len(all) && (slices.Contains(cells, outcomePaused) || slices.Contains(cells, outcomeCredentials) || safe) {
				t.Errorf("all guards were removed, and the emulators did no harm; they prove nothing: %v", cells)
			}
		})
	}
	if !t.Failed() {
		found.check(t)
	}
}

// outcomes returns how far a provider gets with its objects: the worst outcome over its kinds.
func (e emulator) outcomes(t *testing.T, s scope, removed []guard) (reconciled, deleted string) {
	t.Helper()
	ctx := t.Context()
	var objects []*unstructured.Unstructured
	for kind := range e.kinds {
		object := s.object(t, kind, s.name)
		// Cluster API core adds the owner as soon as the Cluster exists.
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: s.name, UID: "1"}})
		for _, guard := range removed {
			guard.remove(object)
		}
		if err := hub.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeForced(t, object) })
		objects = append(objects, object)
	}
	for _, object := range objects {
		outcome, err := e.reconcile(ctx, object)
		if err != nil {
			t.Fatal(err)
		}
		reconciled = worse(reconciled, outcome)
	}
	for _, object := range objects {
		deleted = worse(deleted, e.deleteInForeground(t, object))
	}
	return reconciled, deleted
}

// deleteInForeground deletes an object as `kubectl delete --cascade=foreground` does, with the annotation that allows
// it.
func (e emulator) deleteInForeground(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	ctx := t.Context()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[takeover.AllowUnimportAnnotation] = imported.UID
	object.SetAnnotations(annotations)
	if err := hub.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	err := hub.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsForbidden(err) {
		return "deletion refused"
	}
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := e.reconcile(ctx, object)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// worse returns the outcome that got further.
func worse(a, b string) string {
	order := []string{"", outcomeOwner, "deletion refused", outcomePaused, outcomeCredentials, outcomeFinalizer, outcomeUpdated, outcomeDeleted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// removeForced removes an object with all its finalizers. The policies of its scope may or may not exist any more.
func removeForced(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return
	}
	object.SetFinalizers(nil)
	if err := hub.Update(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	if err := hub.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// createUsableIdentities creates credentials that every namespace may use, and the identity of the imports, which none
// may.
func createUsableIdentities(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"AWSClusterRoleIdentity", "AzureClusterIdentity"} {
		groupKind := schema.GroupKind{Group: infrastructureGroup, Kind: kind}
		usable, err := imported.Object(groupKind, versions[groupKind], namespace, "usable")
		if err != nil {
			t.Fatal(err)
		}
		usable.SetLabels(nil)
		_ = unstructured.SetNestedMap(usable.Object, map[string]any{}, "spec", "allowedNamespaces")
		refused, err := imported.Object(groupKind, versions[groupKind], namespace, "refused")
		if err != nil {
			t.Fatal(err)
		}
		for _, identity := range []*unstructured.Unstructured{usable, refused} {
			if err := hub.Create(t.Context(), identity); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { removeForced(t, identity) })
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "usable", Namespace: namespace}}
	if err := hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), secret) })
}
