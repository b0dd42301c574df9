// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestNeedsObject(t *testing.T) {
	rule := Compile("settings", fleetv1alpha1.HealthRuleSpec{Kind: "ConfigMap", Healthy: "'ready' in object.data"})
	cases := map[string]struct {
		reason string
		rules  []*Rule
		kind   schema.GroupKind
		want   bool
	}{
		"ConfigMap": {reason: "Its being there is all there is.", kind: schema.GroupKind{Kind: "ConfigMap"}},
		"Secret":    {reason: "What is in a Secret is not read without a need.", kind: schema.GroupKind{Kind: "Secret"}},
		"Role":      {reason: "It has no status.", kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}},
		"ConfigMapWithRule": {
			reason: "A rule may look at anything in the object.", rules: []*Rule{rule}, kind: schema.GroupKind{Kind: "ConfigMap"}, want: true,
		},
		"Service": {reason: "It may wait for a load balancer.", kind: schema.GroupKind{Kind: "Service"}, want: true},
		"Role of another group": {
			reason: "A kind is more than its name.", kind: schema.GroupKind{Group: "iam.example.org", Kind: "Role"}, want: true,
		},
		"Anything": {reason: "The status of an unknown kind can mean anything.", kind: schema.GroupKind{Group: "db.example.org", Kind: "Database"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(tc.rules...).NeedsObject(tc.kind); got != tc.want {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// The code that reads objects is written to expect anything. This test is for the case that it does not.
func TestPanicIsUnknown(t *testing.T) {
	kind := schema.GroupKind{Group: "db.example.org", Kind: "Database"}
	a := &assessor{kinds: map[schema.GroupKind]assess{kind: func(fields) (Result, bool) { panic("the sky falls") }}, bare: sets.New[schema.GroupKind]()}
	database := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "db.example.org/v1", "kind": "Database"}}
	for name, obj := range map[string]*unstructured.Unstructured{"in what is known of the kind": database, "no object": nil} {
		if got := a.Assess(obj, true); got.Health != appsv1alpha1.HealthUnknown || got.Reason != appsv1alpha1.ReasonUnreadable {
			t.Errorf("%s: want Unknown, got %+v", name, got)
		}
	}
	if got := a.Assess(&unstructured.Unstructured{}, false); got.Health != appsv1alpha1.HealthUnknown || got.Reason != appsv1alpha1.ReasonNoStatus {
		t.Errorf("an object with nothing in it: want Unknown, got %+v", got)
	}
}

func TestObservedGeneration(t *testing.T) {
	cases := map[string]struct {
		reason   string
		observed any
		want     Result
	}{
		"Number":   {reason: "This is what it shall be.", observed: int64(2), want: healthy()},
		"Float":    {reason: "Without a schema a number can have a fraction.", observed: 2.0, want: healthy()},
		"Fraction": {reason: "There is no generation between two.", observed: 1.5, want: unknown(appsv1alpha1.ReasonUnreadable, "status.observedGeneration is not a number")},
		"Behind":   {reason: "The status is about what was wanted before.", observed: 1.0, want: progressing(appsv1alpha1.ReasonNotObserved, "Its controller has not seen the latest change yet")},
		"List":     {reason: "Anything can be in an object.", observed: []any{int64(2)}, want: unknown(appsv1alpha1.ReasonUnreadable, "status.observedGeneration is not a number")},
		"Null":     {reason: "Nothing is said about generations.", observed: nil, want: healthy()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "db.example.org/v1", "kind": "Database",
				"metadata": map[string]any{"generation": int64(2)},
				"status":   map[string]any{"observedGeneration": tc.observed, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
			}}
			before := obj.DeepCopy()
			if diff := cmp.Diff(tc.want, New().Assess(obj, true)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func TestValid(t *testing.T) {
	long := strings.Repeat("ä", 300)
	cases := map[string]struct {
		reason   string
		in, want Result
	}{
		"Plain":     {reason: "What is valid stays as it is.", in: degraded("Failed", "It has failed"), want: degraded("Failed", "It has failed")},
		"Reason":    {reason: "A reason is one word.", in: degraded("Has failed: 7!", ""), want: degraded("Hasfailed7", "")},
		"NoLetters": {reason: "A reason cannot be empty.", in: unknown("---", "x"), want: unknown("Unknown", "x")},
		"Long": {
			reason: "Length is counted in characters.", in: progressing(strings.Repeat("R", 200), long),
			want: progressing(strings.Repeat("R", 128), strings.Repeat("ä", 255)+"…"),
		},
		"Full":    {reason: "What just fits is not cut.", in: degraded("A", long[:512]), want: degraded("A", long[:512])},
		"Control": {reason: "No message moves a cursor or hides its own end.", in: degraded("A", "a\x1b[31m\nb\u202ec\x00"), want: degraded("A", "a [31m b c")},
		"Invalid": {reason: "The API server takes UTF-8 only.", in: degraded("A", "a\xffb"), want: degraded("A", "a\ufffdb")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, valid(tc.in)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// checkValid fails if a Result is not what the interface promises.
func checkValid(t *testing.T, r Result) {
	t.Helper()
	switch r.Health {
	case appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing,
		appsv1alpha1.HealthUnknown, appsv1alpha1.HealthDegraded:
	case appsv1alpha1.HealthMissing:
		t.Errorf("an object that is there cannot be Missing: %+v", r)
	default:
		t.Errorf("%q is no health", r.Health)
	}
	if r.Reason == "" && r.Health != appsv1alpha1.HealthHealthy {
		t.Errorf("no reason: %+v", r)
	}
	if len(r.Reason) > maxReason || strings.ContainsFunc(r.Reason, notInWord) {
		t.Errorf("%q is not one bounded word", r.Reason)
	}
	if utf8.RuneCountInString(r.Message) > maxMessage || !utf8.ValidString(r.Message) ||
		strings.ContainsFunc(r.Message, unicode.IsControl) {
		t.Errorf("%q is not a bounded line of text", r.Message)
	}
}

func FuzzAssess(f *testing.F) {
	for _, fixture := range fixtures(f) {
		f.Add(fixture.Object.Raw, fixture.statusExpected())
	}
	f.Add([]byte(`{"apiVersion":"a/b/c/d","kind":"Pod","metadata":[]}`), true)
	plain := New()
	library, err := NewLibrary()
	if err != nil {
		f.Fatal(err)
	}
	ruled := library.New(
		Compile("pods", fleetv1alpha1.HealthRuleSpec{Kind: "Pod", Degraded: "object.status.phase == 'Failed'", Message: "object.status.message"}),
		Compile("databases", fleetv1alpha1.HealthRuleSpec{
			Group: "db.example.org", Kind: "Database", Suspended: "object.?spec.?paused.orValue(false)",
			Healthy: "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", Message: "'not ready: ' + object.status.phase",
		}),
	)
	f.Fuzz(func(t *testing.T, data []byte, statusExpected bool) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON(data) != nil || obj.IsList() {
			return
		}
		before := obj.DeepCopy()
		for _, a := range []Assessor{plain, ruled} {
			got := a.Assess(obj, statusExpected)
			checkValid(t, got)
			if again := a.Assess(obj, statusExpected); again != got {
				t.Errorf("another Result the second time: %+v, then %+v", got, again)
			}
		}
		if !reflect.DeepEqual(before, obj) {
			t.Error("the object was changed")
		}
	})
}

func BenchmarkAssess(b *testing.B) {
	all := fixtures(b)
	rule := Compile("databases", fleetv1alpha1.HealthRuleSpec{
		Group: "db.example.org", Kind: "Database",
		Degraded: "object.status.conditions.exists(c, c.type == 'Failed' && c.status == 'True')",
		Healthy:  "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
	})
	library, err := NewLibrary()
	if err != nil {
		b.Fatal(err)
	}
	certificate := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": map[string]any{"name": "web", "generation": int64(1)},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Ready", "message": "Up to date", "observedGeneration": int64(1),
		}}},
	}}
	conditions := []any{map[string]any{"type": "Accepted", "status": "True"}, map[string]any{"type": "ResolvedRefs", "status": "True"}}
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"name": "web", "generation": int64(1)},
		"status": map[string]any{"parents": []any{map[string]any{"conditions": conditions}, map[string]any{"conditions": conditions}}},
	}}
	for name, bench := range map[string]struct {
		object   *unstructured.Unstructured
		assessor Assessor
	}{
		"Deployment":             {all["deployment/available"].object, New()},
		"Pod":                    {all["pod/ready"].object, New()},
		"ConfigMap":              {all["bare/configmap"].object, New()},
		"CustomResource":         {all["customresource/ready"].object, New()},
		"CustomResourceWithRule": {all["customresource/ready"].object, New(rule)},
		"Library/Deployment":     {all["deployment/available"].object, library.New()},
		"Library/Pod":            {all["pod/ready"].object, library.New()},
		"Library/ConfigMap":      {all["bare/configmap"].object, library.New()},
		"Library/CustomResource": {all["customresource/ready"].object, library.New()},
		"Library/Certificate":    {certificate, library.New()},
		"Library/HTTPRoute":      {route, library.New()},
	} {
		b.Run(name, func(b *testing.B) {
			bench.assessor.Assess(bench.object, true)
			b.ReportAllocs()
			for b.Loop() {
				bench.assessor.Assess(bench.object, true)
			}
		})
	}
}

// BenchmarkNewLibrary measures the cost of reading the library when the manager starts. Rules are compiled when they
// are needed.
func BenchmarkNewLibrary(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewLibrary(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCostLimit measures the highest cost, for one expression, of an object whose owner wants to keep the manager
// busy.
func BenchmarkCostLimit(b *testing.B) {
	a := New(Compile("databases", fleetv1alpha1.HealthRuleSpec{
		Group: "db.example.org", Kind: "Database", Healthy: "object.items.all(a, object.items.all(b, a == b))",
	}))
	obj := database(func(object map[string]any) { object["items"] = slices.Repeat([]any{"same"}, 5000) })
	b.ReportAllocs()
	for b.Loop() {
		a.Assess(obj, true)
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Compile("databases", fleetv1alpha1.HealthRuleSpec{Kind: "Database", Healthy: "object.status.phase == 'Running'"})
	}
}
