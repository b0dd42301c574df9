// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestHealthRuleValidation(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   map[string]any
		want   string // A part of the API server's message; empty if the object is valid.
	}{
		"Everything": {
			reason: "Every expression can be given.",
			spec: map[string]any{
				"group": "db.example.org", "kind": "Database", "degraded": "false", "suspended": "false", "progressing": "false",
				"healthy": "true", "message": "'x'",
			},
		},
		"CoreGroup": {
			reason: "Kinds of the core group have none.",
			spec:   map[string]any{"kind": "Pod", "healthy": "true"},
		},
		"EmptyGroup": {
			reason: "The core group may be written as the empty string, as everywhere in Kubernetes.",
			spec:   map[string]any{"group": "", "kind": "Pod", "degraded": "true"},
		},
		"NoExpression": {
			reason: "A rule that says nothing has no effect.",
			spec:   map[string]any{"kind": "Pod"},
			want:   "at least one of degraded, suspended, progressing and healthy is required",
		},
		"MessageOnly": {
			reason: "A message without a state has no effect.",
			spec:   map[string]any{"kind": "Pod", "message": "'x'"},
			want:   "at least one of degraded, suspended, progressing and healthy is required",
		},
		"EmptyExpression": {
			reason: "An empty expression would count as one that is given.",
			spec:   map[string]any{"kind": "Pod", "healthy": ""},
			want:   "should be at least 1 chars long",
		},
		"LongExpression": {
			reason: "Compiling is bounded.",
			spec:   map[string]any{"kind": "Pod", "healthy": strings.Repeat("!", 4096) + "true"},
			want:   "Too long",
		},
		"NoKind": {
			reason: "A rule is for something.",
			spec:   map[string]any{"group": "apps", "healthy": "true"},
			want:   "either kind or kinds is required",
		},
		"Plural": {
			reason: "The name of a resource is not that of a kind, and would match nothing.",
			spec:   map[string]any{"kind": "pods", "healthy": "true"},
			want:   "a kind is a word that begins with a capital letter",
		},
		"GroupWithVersion": {
			reason: "A version in the group would match nothing.",
			spec:   map[string]any{"group": "apps/v1", "kind": "Deployment", "healthy": "true"},
			want:   "an API group is a DNS subdomain",
		},
		"Wildcard": {
			reason: "Only the field groups may have wildcards.",
			spec:   map[string]any{"group": "*.example.org", "kind": "Database", "healthy": "true"},
			want:   "an API group is a DNS subdomain",
		},
		"Several": {
			reason: "A rule can be for several kinds of several groups, and for some versions.",
			spec: map[string]any{
				"groups": []any{"db.example.org", "*.example.com", ""}, "kinds": []any{"Database", "postgresql"}, "versions": []any{"v1"},
				"healthy": "true", "otherwise": "Unknown", "staleStatus": "Progressing",
			},
		},
		"AllKindsOfAllGroups": {
			reason: "Wildcards stand alone.",
			spec:   map[string]any{"groups": []any{"*"}, "kinds": []any{"*"}, "degraded": "phase() == 'Failed'"},
		},
		"KindAndKinds": {
			reason: "It would be unclear which counts.",
			spec:   map[string]any{"kind": "Database", "kinds": []any{"Database"}, "healthy": "true"},
			want:   "either kind or kinds is required",
		},
		"GroupAndGroups": {
			reason: "It would be unclear which counts.",
			spec:   map[string]any{"group": "apps", "groups": []any{"apps"}, "kind": "Database", "healthy": "true"},
			want:   "group and groups cannot both be given",
		},
		"WildcardInTheMiddle": {
			reason: "A wildcard stands for whole parts at the beginning.",
			spec:   map[string]any{"groups": []any{"db.*.org"}, "kind": "Database", "healthy": "true"},
			want:   "*.example.org for the groups below it",
		},
		"PartOfAKind": {
			reason: "A kind is one word or all.",
			spec:   map[string]any{"kinds": []any{"Data*"}, "healthy": "true"},
			want:   "a kind is a word",
		},
		"WildcardAndKind": {
			reason: "The wildcard includes the kind.",
			spec:   map[string]any{"kinds": []any{"*", "Database"}, "healthy": "true"},
			want:   "the wildcard * includes every other kind",
		},
		"NoKinds": {
			reason: "A rule for nothing has no effect.",
			spec:   map[string]any{"kinds": []any{}, "healthy": "true"},
			want:   "should have at least 1 items",
		},
		"OtherwiseHealthy": {
			reason: "A state that no expression recognises is never Healthy.",
			spec:   map[string]any{"kind": "Database", "degraded": "true", "otherwise": "Healthy"},
			want:   "Unsupported value",
		},
		"UnknownField": {
			reason: "A word that means nothing is not dropped in silence.",
			spec:   map[string]any{"kind": "Pod", "healthy": "true", "broken": "true"},
			want:   `unknown field "spec.broken"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": fleetv1alpha1.GroupVersion.String(),
				"kind":       "HealthRule",
				"metadata":   map[string]any{"name": "r-" + strings.ToLower(name)},
				"spec":       tc.spec,
			}}
			err := hub.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
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
