// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
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
		{name: "pause", rules: []string{"paused"}, remove: func(o *unstructured.Unstructured) {
			dropAnnotation(o, imported.PausedAnnotation)
		}},
		{name: "refused identity", rules: []string{"must name an identity", "identity of an imported object"}, remove: func(o *unstructured.Unstructured) {
			for _, field := range []string{"identityRef", "credentialsRef"} {
				if _, found, _ := unstructured.NestedMap(o.Object, "spec", field); found {
					_ = unstructured.SetNestedField(o.Object, "usable", "spec", field, "name")
				}
			}
		}},
		{name: "rule: no finalizer", rules: []string{"finalizer"}, remove: keep},
		{name: "rule: background deletion", rules: []string{"propagation policy"}, remove: keep},
	}
}

func dropAnnotation(object *unstructured.Unstructured, key string) {
	annotations := object.GetAnnotations()
	delete(annotations, key)
	object.SetAnnotations(annotations)
}

// TestProviders removes each guard by itself and makes the providers reconcile every object, then deletes it in the
// foreground. As long as one of the guards on a path exists, no provider reaches its cloud. Where make webhooks has
// compiled the providers' own reconcilers, they reach it in the same rows.
func TestProviders(t *testing.T) {
	all := guards()
	rows := [][]guard{{}}
	for _, one := range all {
		rows = append(rows, []guard{one})
	}
	// These rows show which guards hold when several are removed, and that harm is done when none of a path is left.
	rows = append(rows, all[:2], []guard{all[0], all[2], all[3]}, all[1:], all[:3], []guard{all[0], all[1], all[3]}, all)

	createUsableIdentities(t)
	found, own := &table{name: "providers", header: []string{"Guard removed", "Still safe?"}}, map[string]*reconcilers{}
	for _, provider := range emulators() {
		found.header = append(found.header, provider.name+" "+provider.version+": reconciled", "deleted")
		own[provider.name] = startReconcilers(t, provider)
	}
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
				reconciled, deleted := provider.outcomes(t, s, removed, own[provider.name])
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

// outcomes returns how far a provider gets with its objects: the worst outcome over its kinds. Its own reconcilers, if
// there are any, must get to the cloud if and only if it does.
func (e emulator) outcomes(t *testing.T, s scope, removed []guard, own *reconcilers) (reconciled, deleted string) {
	t.Helper()
	objects := e.create(t, s, removed)
	for _, object := range objects {
		outcome, err := e.reconcile(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		reconciled = worse(reconciled, outcome)
	}
	own.compare(t, e, objects, reconciled)
	for _, object := range objects {
		deleted = worse(deleted, e.deleteInForeground(t, object))
	}
	if e.deletesCreated && deleted == outcomeDeleted && reconciled != outcomeUpdated {
		deleted = outcomeNothing
	}
	if deleted != outcomeRefused {
		own.compare(t, e, objects, deleted)
	}
	return reconciled, deleted
}

// create creates the objects that a provider reconciles, as the import has observed a cluster that is ready, and
// returns them. Their owners are no part of the import here: its guards on them are not what is tested.
func (e emulator) create(t *testing.T, s scope, removed []guard) (reconciled []*unstructured.Unstructured) {
	t.Helper()
	name := s.name + "-" + strings.ToLower(e.name)
	var owners []metav1.OwnerReference
	for _, kind := range []string{"Cluster", "MachinePool"} {
		owner := s.object(t, schema.GroupKind{Group: "cluster.x-k8s.io", Kind: kind}, name)
		owner.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": name})
		owner.SetAnnotations(nil)
		owner.SetOwnerReferences(owners)
		if kind == "Cluster" {
			for field, kind := range map[string]schema.GroupKind{"controlPlaneRef": e.controlPlane(), "infrastructureRef": e.cluster} {
				reference := map[string]string{"apiGroup": kind.Group, "kind": kind.Kind, "name": name}
				_ = unstructured.SetNestedStringMap(owner.Object, reference, "spec", field)
			}
		} else {
			_ = unstructured.SetNestedField(owner.Object, name, "spec", "clusterName")
			_ = unstructured.SetNestedField(owner.Object, name, "spec", "template", "spec", "clusterName")
		}
		createReady(t, owner)
		owners = append(owners, metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: kind, Name: name, UID: owner.GetUID()})
	}
	kinds := slices.SortedFunc(maps.Keys(e.kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.Kind, b.Kind) })
	if !slices.Contains(kinds, e.cluster) {
		kinds = append(kinds, e.cluster)
	}
	for _, kind := range kinds {
		object := s.object(t, kind, name)
		// Cluster API core adds the owners as soon as they exist.
		object.SetOwnerReferences(owners)
		for _, guard := range removed {
			guard.remove(object)
		}
		createReady(t, object)
		if _, found := e.kinds[kind]; found {
			reconciled = append(reconciled, object)
		}
	}
	return reconciled
}

// createReady creates an object whose status says that it is ready, in the words of each kind.
func createReady(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeForced(t, object) })
	object.Object["status"] = map[string]any{
		"ready": true, "initialized": true, "initialization": map[string]any{"infrastructureProvisioned": true},
	}
	if err := hub.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// deleteInForeground deletes an object as `kubectl delete --cascade=foreground` does, with the annotation that allows
// it.
func (e emulator) deleteInForeground(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	ctx := t.Context()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	allowDeletion(object)
	if err := hub.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	err := hub.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsForbidden(err) {
		return outcomeRefused
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

func allowDeletion(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[takeover.AllowUnimportAnnotation] = imported.UID
	object.SetAnnotations(annotations)
}

// worse returns the outcome that got further.
func worse(a, b string) string {
	order := []string{"", outcomeOwner, outcomeRefused, outcomePaused, outcomeCredentials, outcomeFinalizer, outcomeUpdated, outcomeDeleted}
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
	allowDeletion(object)
	if err := hub.Update(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	if err := hub.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// createUsableIdentities creates credentials that every namespace may use, and the identity of the imports, which none
// may and whose Secret does not exist.
func createUsableIdentities(t *testing.T) {
	t.Helper()
	create := func(object client.Object) {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), object) })
	}
	for _, provider := range emulators() {
		if len(provider.secret) == 0 {
			continue
		}
		for _, name := range []string{"usable", "refused"} {
			identity, err := imported.Object(provider.identity, versions[provider.identity], namespace, name)
			if err != nil {
				t.Fatal(err)
			}
			identity.SetLabels(nil)
			if name == "usable" {
				_ = unstructured.SetNestedMap(identity.Object, map[string]any{}, "spec", "allowedNamespaces")
			}
			create(identity)
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	google, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "shop-project", "client_email": "usable@shop-project.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "usable", Namespace: namespace}, StringData: map[string]string{
		"AccessKeyID": "usable", "SecretAccessKey": "usable", "clientSecret": "usable", "credentials": string(google),
	}})
}
