// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

var workload client.Client

func TestMain(m *testing.M) {
	os.Exit(testenv.Run(m, appsv1alpha1.AddToScheme, func(c client.Client) { workload = c }, definitionFile()))
}

func definitionFile() string {
	return filepath.Join(testenv.Root(), "config", "crd", "workload", "apps.masthead.dev_applications.yaml")
}

// object is a shorthand for a JSON object.
type object = map[string]any

// with is a valid spec, with some fields set, or left out if their value is nil.
func with(fields object) object {
	spec := object{"selector": object{"matchLabels": object{"app": "wordpress"}}}
	for key, value := range fields {
		if value == nil {
			delete(spec, key)
			continue
		}
		spec[key] = value
	}
	return spec
}

func component(name string, kind object) object {
	return with(object{"components": object{name: kind}})
}

func selecting(selector object) object { return with(object{"selector": selector}) }

func expression(key, operator string, values ...any) object {
	e := object{"key": key, "operator": operator}
	if values != nil {
		e["values"] = values
	}
	return selecting(object{"matchExpressions": []any{e}})
}

func many(n int, format string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

func application(name string, spec object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": appsv1alpha1.GroupVersion.String(), "kind": "Application",
		"metadata": object{"namespace": "default", "name": name}, "spec": spec,
	}}
}

// validationCase is an object that the API server accepts or refuses.
type validationCase struct {
	reason string
	name   string
	spec   object
	want   string // A part of the API server's message; empty if the object is valid.
}

func validate(t *testing.T, cases map[string]validationCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = strings.ToLower(strings.ReplaceAll(t.Name(), "/", "."))
			}
			err := workload.Create(t.Context(), application(tc.name, tc.spec), client.FieldValidation(metav1.FieldValidationStrict))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nCreate: unexpected error: %v", tc.reason, err)
			case tc.want != "" && err == nil:
				t.Errorf("%s\nCreate: want an error with %q, got none", tc.reason, tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("%s\nCreate: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestValidationOfComponentsAndDependencies covers the spec except the selector and the health check.
func TestValidationOfComponentsAndDependencies(t *testing.T) {
	service := object{"version": "v1", "kind": "Service"}
	aName := "the name of a component is that of an object"
	tooMany := object{}
	for i := range 257 {
		tooMany[fmt.Sprintf("c%d", i)] = service
	}
	validate(t, map[string]validationCase{
		"Minimal":           {reason: "A selector is all that is needed.", spec: with(nil)},
		"TheKEPsName":       {reason: "The name is a DNS subdomain.", name: "word.press-1", spec: with(nil)},
		"NameInCapitals":    {reason: "The name is a DNS subdomain.", name: "WordPress", spec: with(nil), want: "lowercase RFC 1123 subdomain"},
		"CoreGroupLeftOut":  {reason: "The core group has no name.", spec: component("db", service)},
		"CoreGroupEmpty":    {reason: "And can be said to have none.", spec: component("db", object{"group": "", "version": "v1", "kind": "Service"})},
		"DottedGroup":       {reason: "Custom resources are components, too.", spec: component("db", object{"group": "db.acmeco.org", "version": "v1beta1", "kind": "MySQL"})},
		"NameOfARole":       {reason: "Some kinds of Kubernetes have names with a colon.", spec: component("system:reader", object{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role"})},
		"NameOfTheObject":   {reason: "Two objects of the same name need two names as components.", spec: component("wordpress-svc", object{"version": "v1", "kind": "Service", "name": "wordpress"})},
		"NoVersion":         {reason: "A kind without a version cannot be looked up.", spec: component("db", object{"kind": "Service"}), want: "version: Required value"},
		"NoKind":            {reason: "Nor one without a kind.", spec: component("db", object{"version": "v1"}), want: "kind: Required value"},
		"GroupInVersion":    {reason: "apiVersion is not version.", spec: component("db", object{"version": "apps/v1", "kind": "Deployment"}), want: "a version is a DNS label"},
		"ResourceAsKind":    {reason: "A plural is not a kind.", spec: component("db", object{"version": "v1", "kind": "services"}), want: "a kind is a word that begins with a capital letter"},
		"GroupInCapitals":   {reason: "A group is a DNS subdomain.", spec: component("db", object{"group": "Apps", "version": "v1", "kind": "Deployment"}), want: "an API group is a DNS subdomain"},
		"GroupWithTwoDots":  {reason: "A group is a DNS subdomain.", spec: component("db", object{"group": "a..b", "version": "v1", "kind": "A"}), want: "an API group is a DNS subdomain"},
		"UnknownField":      {reason: "What is misspelt is not ignored.", spec: component("db", object{"version": "v1", "kind": "Service", "namespace": "other"}), want: "unknown field"},
		"ComponentsAreAMap": {reason: "The KEP's type has a map, its example a list.", spec: with(object{"components": []any{object{"db": service}}}), want: `unknown field "spec.components[0].db"`},
		"ComponentCapitals": {reason: "No object is called so.", spec: component("DB", service), want: aName},
		"ComponentEmpty":    {reason: "No object is called so.", spec: component("", service), want: aName},
		"ComponentTooLong":  {reason: "No object is called so.", spec: component(strings.Repeat("a", 254), service), want: aName},
		"ComponentLongest":  {reason: "A name has 253 characters at most.", spec: component(strings.Repeat("a", 253), service)},
		"ObjectName":        {reason: "No object is called so.", spec: component("db", object{"version": "v1", "kind": "Service", "name": "A_B"}), want: "the name of an object consists of"},
		"TooManyComponents": {reason: "The status has to stay bounded.", spec: with(object{"components": tooMany}), want: "must have at most 256 items"},
		"Dependencies":      {reason: "An Application can need others.", spec: with(object{"dependencies": []any{"mysql", "redis.cache"}})},
		"SelfDependency":    {reason: "It would wait for itself.", name: "selfish", spec: with(object{"dependencies": []any{"mysql", "selfish"}}), want: "an Application cannot depend on itself"},
		"DependencyTwice":   {reason: "A list of names is a set.", spec: with(object{"dependencies": []any{"mysql", "mysql"}}), want: "Duplicate value"},
		"DependencyPath":    {reason: "A dependency is in the same namespace.", spec: with(object{"dependencies": []any{"other/mysql"}}), want: "the name of an Application is a DNS subdomain"},
		"TooManyNeeds":      {reason: "The status has to stay bounded.", spec: with(object{"dependencies": many(65, "d%d")}), want: "must have at most 64 items"},
		"VersionIsText":     {reason: "The KEP's example says 1.0, which YAML takes for a number.", spec: with(object{"version": 1.5}), want: "must be of type string"},
		"Everything": {
			reason: "Every field of the KEP is there under the KEP's name.",
			spec: with(object{
				"type": "wordpress", "version": "4.8", "url": "https://wordpress.org", "description": "A blog.", "maintainers": []any{"Ann <ann@acmeco.org>"},
				"keywords": []any{"cms", "blog"}, "license": "https://wordpress.org/about/license", "dashboard": "https://blog.acmeco.org/wp-admin",
				"components": object{"wordpress": object{"group": "apps", "version": "v1", "kind": "StatefulSet"}}, "dependencies": []any{"mysql"},
			}),
		},
		"LongType":        {reason: "Texts are bounded.", spec: with(object{"type": strings.Repeat("a", 254)}), want: "may not be more than 253"},
		"LongVersion":     {reason: "Texts are bounded.", spec: with(object{"version": strings.Repeat("a", 254)}), want: "may not be more than 253"},
		"LongURL":         {reason: "Texts are bounded.", spec: with(object{"url": strings.Repeat("a", 2049)}), want: "may not be more than 2048"},
		"LongDescription": {reason: "Texts are bounded.", spec: with(object{"description": strings.Repeat("a", 4097)}), want: "may not be more than 4096"},
		"LongMaintainer":  {reason: "Texts are bounded.", spec: with(object{"maintainers": []any{strings.Repeat("a", 254)}}), want: "may not be more than 253"},
		"ManyMaintainers": {reason: "Lists are bounded.", spec: with(object{"maintainers": many(65, "m%d")}), want: "must have at most 64 items"},
		"ManyKeywords":    {reason: "Lists are bounded.", spec: with(object{"keywords": many(65, "k%d")}), want: "must have at most 64 items"},
		"LongLicense":     {reason: "Texts are bounded.", spec: with(object{"license": strings.Repeat("a", 2049)}), want: "may not be more than 2048"},
		"LongDashboard":   {reason: "Texts are bounded.", spec: with(object{"dashboard": strings.Repeat("a", 2049)}), want: "may not be more than 2048"},
		"NoSpec":          {reason: "An Application without a spec says nothing.", spec: nil, want: "Required value"},
	})
}

// TestGenerationIncrementation verifies what the API server does, which differs from the KEP: a generation begins with
// 1, and grows with each change of the spec, but not with a change of the status.
func TestGenerationIncrementation(t *testing.T) {
	app := application("generation", with(nil))
	if err := workload.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if got := app.GetGeneration(); got != 1 {
		t.Errorf("want generation 1 at creation, got %d", got)
	}
	patch := func(p string, patch func(client.Object, client.Patch) error) {
		t.Helper()
		if err := patch(app, client.RawPatch("application/merge-patch+json", []byte(p))); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"version":"2"}}`, func(o client.Object, p client.Patch) error { return workload.Patch(t.Context(), o, p) })
	if got := app.GetGeneration(); got != 2 {
		t.Errorf("want generation 2 after a change, got %d", got)
	}
	patch(`{"status":{"observedGeneration":2}}`, func(o client.Object, p client.Patch) error { return workload.Status().Patch(t.Context(), o, p) })
	if got := app.GetGeneration(); got != 2 {
		t.Errorf("want generation 2 after a change of the status, got %d", got)
	}
}
