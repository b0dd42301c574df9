// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// editSpecSchema changes the schema of claims' specs in the hub.
func (f *fixture) editSpecSchema(edit func(fields map[string]apiextensionsv1.JSONSchemaProps)) {
	f.T.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: f.ClaimCRD().Name}}
	f.Edit(f.Hub, crd, func() { edit(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties) })
}

// TestPushStartsFromTheAnswerToProtect: a webhook of the workload cluster may change a claim when it is written, and no
// event follows from a write of ours.
func TestPushStartsFromTheAnswerToProtect(t *testing.T) {
	claim, _ := carried(t)
	r, s, server, _ := teller(t, claim)
	server.answer, server.labels = nil, map[string]string{"team": "a"}
	if err := r.protect(t.Context(), s, ownershiptest.InBar("db")); err != nil {
		t.Fatal(err)
	}
	if got := s.Intent(t.Context(), ownershiptest.InBar("db"), nil).GetLabels()["team"]; got != "a" {
		t.Errorf("want what the cluster answered to be pushed, got %q", got)
	}
}

// TestClaimIsPushedWhenAnyFieldBecomesEmpty edits claims as `kubectl replace` does.
func TestClaimIsPushedWhenAnyFieldBecomesEmpty(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	text := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	words := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: text}}
	f.editSpecSchema(func(fields map[string]apiextensionsv1.JSONSchemaProps) {
		fields["words"] = words
		fields["nested"] = apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &words}}
		fields["free"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		fields["struct"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": *text, "words": words}}
		fields["list"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", XListType: new("map"), XListMapKeys: []string{"name"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": *text, "words": words},
			}},
		}
	})
	f.start()
	shapes := map[string]struct{ before, after string }{
		"map":          {`{"words": {"x": "y"}}`, `{"words": {}}`},
		"map-in-map":   {`{"nested": {"a": {"x": "y"}, "b": {"x": "y"}}}`, `{"nested": {"a": {}, "b": {"x": "y"}}}`},
		"maps":         {`{"nested": {"a": {"x": "y"}}}`, `{"nested": {}}`},
		"struct":       {`{"struct": {"a": "b"}}`, `{"struct": {}}`},
		"map-in-one":   {`{"struct": {"words": {"x": "y"}}}`, `{"struct": {"words": {}}}`},
		"free":         {`{"free": {"a": 1}}`, `{"free": {}}`},
		"free-inside":  {`{"free": {"a": {"b": 1}}}`, `{"free": {"a": {}}}`},
		"list-element": {`{"list": [{"name": "a", "words": {"x": "y"}}]}`, `{"list": [{"name": "b"}, {"name": "a", "words": {}}]}`},
	}
	for name, shape := range shapes {
		f.CreateClaim(name, func(u *unstructured.Unstructured) { u.Object["spec"] = newSpec(t, shape.before, "5.6") })
	}
	for name := range shapes {
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}
	for name, shape := range shapes {
		u := f.NewClaim(f.Namespace, name)
		f.Edit(f.Workload, u, func() { u.Object["spec"] = newSpec(t, shape.after, "5.7") })
	}
	for name, shape := range shapes {
		f.Within("the hub has what "+name+" wants", func() error {
			hub, err := f.GetClaim(f.Hub, f.Target, name)
			if err != nil {
				return err
			}
			want := newSpec(t, shape.after, "5.7")
			want["compositeDeletePolicy"] = "Background"
			if diff := cmp.Diff(want, hub.Object["spec"]); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
		f.Within(name+" is synced", func() error {
			u, err := f.GetClaim(f.Workload, f.Namespace, name)
			if err != nil {
				return err
			}
			if c := propagation.AgentSynced(u); c["status"] != "True" || c["observedGeneration"] != u.GetGeneration() {
				return fmt.Errorf("its condition is %v", c)
			}
			return nil
		})
	}

	// Crossplane fills in a map that a claim wants to be empty.
	f.CreateClaim("db", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["free"] = map[string]any{"ours": "a"}
	})
	hub := f.WaitForPushed("db")
	f.Edit(f.Hub, hub, func() { _ = unstructured.SetNestedField(hub.Object, "b", "spec", "free", "theirs") })
	u := f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, u, func() { u.Object["spec"].(map[string]any)["free"] = map[string]any{} })
	f.Within("only our entry goes", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if err != nil {
			return err
		}
		if got := hub.Object["spec"].(map[string]any)["free"]; !cmp.Equal(got, any(map[string]any{"theirs": "b"})) { //nolint:forcetypeassert // It has one.
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

func newSpec(t *testing.T, text, version string) map[string]any {
	t.Helper()
	spec := map[string]any{}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	spec["version"] = version
	return runtime.DeepCopyJSON(withIntegers(spec))
}

func withIntegers(in map[string]any) map[string]any {
	for k, v := range in {
		switch v := v.(type) {
		case float64:
			in[k] = int64(v)
		case map[string]any:
			withIntegers(v)
		}
	}
	return in
}

// TestTypeOfFieldChanges has the author of a kind change the type of a field. Its claims are then wrong, until their
// authors write them in the new type.
func TestTypeOfFieldChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	f.MarkReady("db", "10.0.0.1")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.editSpecSchema(func(fields map[string]apiextensionsv1.JSONSchemaProps) {
		fields["storageGB"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	probe := f.NewClaim(f.Namespace, "probe")
	probe.Object["spec"] = map[string]any{"storageGB": "1"}
	for _, c := range []client.Client{f.Hub, f.Workload} {
		f.Within("the definition follows", func() error {
			p := probe.DeepCopy()
			if c == f.Hub {
				p.SetNamespace(f.Target)
			}
			return c.Create(f.Ctx, p, client.DryRunAll)
		})
	}
	u := f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, u, func() { _ = unstructured.SetNestedField(u.Object, "5.8", "spec", "version") })
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonRejected)
	if c := propagation.AgentSynced(claim); c["status"] != "False" || !strings.Contains(fmt.Sprint(c["message"]), ".spec.storageGB: expected string") {
		t.Errorf("want the field to be named, got %v", c)
	}
	// Crossplane writes the status of what it has, by which the API server drops the managedFields.
	f.MarkReady("db", "10.0.0.2")

	f.Edit(f.Workload, u, func() { _ = unstructured.SetNestedField(u.Object, "20", "spec", "storageGB") })
	f.Within("the hub has the new value", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if err != nil {
			return err
		}
		if spec := hub.Object["spec"].(map[string]any); spec["storageGB"] != "20" || spec["version"] != "5.8" { //nolint:forcetypeassert // It has one.
			return fmt.Errorf("it is %v", spec)
		}
		return nil
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	// What is no longer wanted goes, as before.
	f.Edit(f.Workload, u, func() { unstructured.RemoveNestedField(u.Object, "spec", "storageGB") })
	f.Within("the field is removed", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if err != nil {
			return err
		}
		if got, there, _ := unstructured.NestedFieldNoCopy(hub.Object, "spec", "storageGB"); there {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// TestAdmissionOfTheHubChangesAClaim has the claim say so, without repeating the push.
func TestAdmissionOfTheHubChangesAClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.Hub, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{f.Group}, APIVersions: []string{"*"}, Resources: []string{"mysqlinstances"}},
				},
			}}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "replace", path: "/spec/storageGB", value: 10}]`},
			}},
		},
	})
	f.Create(f.Hub, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: f.Class},
	})
	f.Within("the policy is in force", func() error {
		probe := f.NewClaim(f.Target, "probe")
		probe.Object["spec"] = map[string]any{"storageGB": int64(1)}
		if err := f.Hub.Create(f.Ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if size, _, _ := unstructured.NestedInt64(probe.Object, "spec", "storageGB"); size != 10 {
			return fmt.Errorf("the size is %d", size)
		}
		return nil
	})
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	const want = "The hub holds this claim, except for spec.storageGB, which its admission or schema changes."
	if c := propagation.AgentSynced(f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)); c["status"] != "True" || c["message"] != want {
		t.Errorf("want %q, got %v", want, c)
	}
	// One to create it, one to find out that another changes nothing.
	if got := f.HubRequests.Writes(); len(got) > 2 {
		t.Errorf("want the claim to be pushed at most twice, got %v", got)
	}
	u := f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, u, func() { _ = unstructured.SetNestedField(u.Object, int64(10), "spec", "storageGB") })
	f.Within("the claim says what the hub has", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		if c := propagation.AgentSynced(u); c["message"] != "The hub holds this claim." {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})
}
