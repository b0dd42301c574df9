// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestMinimalReflection: without all that a webhook may refuse, an object is valid, keeps its guards, and says where
// the API server is.
func TestMinimalReflection(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	each(t, func(t *testing.T, f layouts.Fixture, served reflection.Schemas) {
		t.Helper()
		imp := newImport(f)
		_, reflected := hub.reflect(t, imp, served, f)
		for _, o := range reflected.Objects {
			minimal, lossy := reflection.Reduce(o.Object, nil, hub.schemas, nil, "no")
			hub.validate(t, minimal)
			if len(lossy) == 0 || !reflection.IsGuarded(minimal, o.Object) || !imp.Makes(minimal) {
				t.Errorf("%s: guarded %v, lossy %v", o.Object.GetKind(), reflection.IsGuarded(minimal, o.Object), lossy)
			}
			for _, field := range []string{"endpoint", "controlPlaneEndpoint", "identityRef", "credentialsRef"} {
				want, _, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", field)
				got, _, _ := unstructured.NestedFieldNoCopy(minimal.Object, "spec", field)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s: -want, +got:\n%s", o.Object.GetKind(), field, diff)
				}
			}
			again, _ := reflection.Reduce(minimal, minimal, hub.schemas, nil, "no")
			if diff := cmp.Diff(minimal, again); diff != "" {
				t.Errorf("%s: what is minimal is reduced further: %s", o.Object.GetKind(), diff)
			}
		}
	})
}

func controlPlaneWith(spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "AzureManagedControlPlane"})
	o.SetName("prod")
	return o
}

func TestReduce(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	identity := map[string]any{"name": "denied"}
	full := map[string]any{"identityRef": identity, "version": "v1.31.1", "dnsPrefix": "new", "networkPlugin": "azure"}
	live := map[string]any{"identityRef": identity, "version": "v1.30.1", "dnsPrefix": "old", "disableLocalAccounts": true, "providerIDList": []any{"x"}}
	for name, tc := range map[string]struct {
		reason string
		live   map[string]any
		fields []string
		want   map[string]any
		lossy  []string
	}{
		"Created": {
			"A field that is refused is left out, the others stay.", nil, []string{"dnsPrefix"},
			map[string]any{"identityRef": identity, "version": "v1.31.1", "networkPlugin": "azure"},
			[]string{`AzureManagedControlPlane/prod spec.dnsPrefix: no (observed "new")`},
		},
		"Changed": {
			"What cannot be changed keeps its value, the others change.", live, []string{"dnsPrefix"},
			map[string]any{"identityRef": identity, "version": "v1.31.1", "networkPlugin": "azure", "dnsPrefix": "old"},
			[]string{`AzureManagedControlPlane/prod spec.dnsPrefix: no (observed "new"); the default "old" is used instead`},
		},
		"Removed": {
			"What cannot be removed stays.", live, []string{"disableLocalAccounts"},
			map[string]any{"identityRef": identity, "version": "v1.31.1", "networkPlugin": "azure", "dnsPrefix": "new", "disableLocalAccounts": true},
			[]string{`AzureManagedControlPlane/prod spec.disableLocalAccounts: no; the default "true" is used instead`},
		},
		"CreatedMinimal": {
			"The schema requires the version.", nil, nil,
			map[string]any{"identityRef": identity, "version": "v1.31.1"},
			[]string{`AzureManagedControlPlane/prod spec.dnsPrefix: no (observed "new")`, `AzureManagedControlPlane/prod spec.networkPlugin: no (observed "azure")`},
		},
		"ChangedMinimal": {
			"All else stays as it is; of what is not wanted, there may be a default.", live, nil,
			map[string]any{"identityRef": identity, "version": "v1.31.1", "dnsPrefix": "old", "disableLocalAccounts": true},
			[]string{
				`AzureManagedControlPlane/prod spec.dnsPrefix: no (observed "new"); the default "old" is used instead`,
				`AzureManagedControlPlane/prod spec.networkPlugin: no (observed "azure")`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var there *unstructured.Unstructured
			if tc.live != nil {
				there = controlPlaneWith(tc.live)
			}
			object := controlPlaneWith(full)
			reduced, all := reflection.Reduce(object, there, hub.schemas, tc.fields, "no")
			var lossy []string
			for _, l := range all {
				lossy = append(lossy, l.String())
			}
			if diff := cmp.Diff(tc.want, reduced.Object["spec"]) + cmp.Diff(tc.lossy, lossy); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(controlPlaneWith(full), object); diff != "" {
				t.Errorf("the argument is changed: %s", diff)
			}
		})
	}
}

func TestRefusedFields(t *testing.T) {
	t.Parallel()
	full := controlPlaneWith(map[string]any{"identityRef": "x", "template": "x", "loggingService": "x", "dnsPrefix": "x"})
	live := controlPlaneWith(map[string]any{"aadProfile": "x"})
	for name, tc := range map[string]struct {
		reason, refusal string
		live            *unstructured.Unstructured
		want            []string
	}{
		"None":    {"Policies have words of their own.", "no", live, nil},
		"Field":   {"Webhooks name it by its path.", `spec.dnsPrefix: Invalid value: "x"`, live, []string{"dnsPrefix"}},
		"Inner":   {"A part of a field is not left out alone.", "spec.dnsPrefix.length: Too long", live, []string{"dnsPrefix"}},
		"Several": {"They may be separated by commas.", "[spec.LoggingService: Forbidden, Spec.dnsPrefix: Forbidden]", live, []string{"dnsPrefix", "loggingService"}},
		"Live":    {"It cannot be removed.", "spec.aadProfile: field cannot be nil", live, []string{"aadProfile"}},
		"Absent":  {"No such object is there.", "spec.aadProfile: field cannot be nil", nil, nil},
		"Guard":   {"No refusal costs an object its guards.", "spec.identityRef: Forbidden, spec.template: Forbidden", live, nil},
		"Other":   {"The words may name what is not there.", "myspec.dnsPrefix or spec.other", live, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, reflection.RefusedFields(full, tc.live, tc.refusal)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsGuarded(t *testing.T) {
	t.Parallel()
	newObject := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := controlPlaneWith(map[string]any{
			"identityRef": map[string]any{"name": "denied"}, "dnsPrefix": "x",
			"template": map[string]any{"spec": map[string]any{"version": "v1.31.1", "infrastructureRef": map[string]any{"name": "prod"}}},
		})
		o.SetLabels(map[string]string{"fleet.masthead.dev/import-uid": "1"})
		o.SetAnnotations(map[string]string{"cluster.x-k8s.io/paused": "true", "cluster.x-k8s.io/managed-by": "crossplane", "example.org/other": "x"})
		if change != nil {
			change(o)
		}
		return o
	}
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"Same":      {nil, true},
		"Other":     {func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "dnsPrefix") }, true},
		"Unlabeled": {func(o *unstructured.Unstructured) { o.SetLabels(nil) }, false},
		"Unpaused": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"cluster.x-k8s.io/managed-by": "crossplane"})
		}, false},
		"OtherVersion": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "v1.30.1", "spec", "template", "spec", "version")
		}, true},
		"OtherPool": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "real", "spec", "template", "spec", "infrastructureRef", "name")
		}, false},
		"Paused": {func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "paused") }, true},
		"Nodes": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(o.Object, []string{"node-1"}, "spec", "providerIDList")
		}, false},
		"OtherIdentity": {func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"identityRef": map[string]any{"name": "real"}}
		}, false},
		"NoIdentity": {func(o *unstructured.Unstructured) { o.Object["spec"] = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reflection.IsGuarded(newObject(tc.change), newObject(nil)); got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}
